"""The base of all settings models; their own checks raise our errors instead of pydantic's."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator

from horsies.errors import HorsiesError, ValidationReport


class Refused(Exception):  # noqa: N818  # only a carrier; never leaves this package
    """Carries an error through pydantic, which would wrap anything that is a ValueError."""

    def __init__(self, error: HorsiesError) -> None:
        super().__init__(error)
        self.error = error


class Settings(BaseModel):
    """Pydantic checks the fields first; then all `problems` are raised together."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    phase_name: ClassVar[str] = "config"

    if not TYPE_CHECKING:  # type checkers should see the fields, not **data

        def __init__(self, **data: object) -> None:
            try:
                super().__init__(**data)
            except Refused as refused:
                raise refused.error from None

        # Pydantic must not treat this as a custom __init__: the outermost model unwraps the error.
        __init__.__pydantic_base_init__ = True

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        try:
            return super().model_validate(obj, **options)
        except Refused as refused:
            raise refused.error from None

    @model_validator(mode="after")
    def _refuse_problems(self) -> Self:
        report = ValidationReport(self.phase_name, list(self.problems()))
        error = report.to_error()
        if error is not None:
            raise Refused(error)
        return self

    def problems(self) -> Iterator[HorsiesError]:
        """Yield every independent violation of the rules between fields."""
        yield from ()
