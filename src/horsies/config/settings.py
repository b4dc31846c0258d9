"""The base of all settings models: their own checks raise our errors, not pydantic's."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator

from horsies.errors import HorsiesError, ValidationReport


class Refused(Exception):  # noqa: N818  # a carrier, never seen outside
    """Carries an error through pydantic, which would wrap anything that is a ValueError."""

    def __init__(self, error: HorsiesError) -> None:
        super().__init__(error)
        self.error = error


class Settings(BaseModel):
    """Fields are checked by pydantic first; then `problems` are collected and raised."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    phase_name: ClassVar[str] = "config"

    if not TYPE_CHECKING:  # type checkers shall see the fields, not **data

        def __init__(self, **data: Any) -> None:
            try:
                super().__init__(**data)
            except Refused as refused:
                raise refused.error from None

        # Not a custom __init__ for pydantic: nested settings carry their error to the outermost.
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
