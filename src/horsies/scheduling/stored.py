"""Pure: schedules as they are stored, beside those in code."""

from typing import Any

from pydantic import ValidationError

from horsies.config.schedules import AnySchedule, TaskSchedule, WorkflowSchedule
from horsies.errors import HorsiesError


def stored_definition(schedule: AnySchedule) -> dict[str, Any]:
    """A schedule as plain values; ValueError if its arguments have no JSON form."""
    return schedule.model_dump(mode="json")


def read_definition(name: str, stored: Any) -> AnySchedule:
    """The schedule of stored values; ValueError if they make none of this name."""
    if not isinstance(stored, dict):
        raise ValueError(f"its stored definition is not an object: {stored!r:.100}")  # noqa: TRY004 - of a row, not a caller
    kind = WorkflowSchedule if "definition_key" in stored else TaskSchedule
    try:
        schedule = kind.model_validate(stored)
    except (ValidationError, HorsiesError, RecursionError) as error:
        raise ValueError(f"its stored definition is not valid: {error}") from error
    if schedule.name != name:
        raise ValueError(f"its stored definition is that of {schedule.name!r}")
    return schedule
