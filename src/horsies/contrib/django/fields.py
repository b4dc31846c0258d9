"""Model fields for what the engine's columns hold."""

import uuid
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models

from horsies.database.loading import fitted


class TextUUIDField(models.CharField):
    """The engine's ids: text in the database, and a UUID in Python where it is one.

    An id that was given by hand, such as `2026/11/16`, stays text.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["max_length"] = 36
        super().__init__(*args, **kwargs)

    def from_db_value(self, value: Any, _expression: Any, _connection: Any) -> Any:
        return self.to_python(value)

    def to_python(self, value: Any) -> uuid.UUID | str | None:
        if value is None or isinstance(value, uuid.UUID):
            return value
        try:
            return uuid.UUID(value)
        except ValueError:
            return str(value)
        except (AttributeError, TypeError):
            raise ValidationError(
                "“%(value)s” is not an id.", code="invalid", params={"value": value}
            ) from None

    def get_prep_value(self, value: Any) -> str | None:
        found = self.to_python(value)
        return None if found is None else str(found)


class _Column:
    """What type checkers see of a row's attribute: its value, of which Django has no type."""

    if TYPE_CHECKING:

        def __get__(self, row: object, model: object) -> Any: ...


class InstantField(_Column, models.DateTimeField):
    """An instant as a row may hold it: None for one that Python cannot hold, such as infinity."""

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        return f"horsies_readable({sql})", params


class TextArrayField(_Column, models.Field):
    """An array of texts, read as a list; Django's own needs an app of its own in INSTALLED_APPS."""

    def from_db_value(self, value: Any, _expression: Any, _connection: Any) -> Any:
        return fitted(value, list[str] | None)

    def db_type(self, connection: Any) -> str:
        return "text[]"
