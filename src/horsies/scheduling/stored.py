"""Pure: schedules as they are stored, beside those in code."""

from typing import Any

from pydantic import ValidationError

from horsies.config.schedules import AnySchedule, TaskSchedule, WorkflowSchedule
from horsies.errors import HorsiesError


def stored_definition(schedule: AnySchedule) -> dict[str, Any]:
    """A schedule as plain values; ValueError if its arguments have no JSON form."""
    return schedule.model_dump(mode="json")


def read_definition(stored: dict[str, Any]) -> AnySchedule:
    """The schedule of stored values; ValueError if they make none."""
    kind = WorkflowSchedule if "definition_key" in stored else TaskSchedule
    try:
        return kind.model_validate(stored)
    except (ValidationError, HorsiesError) as error:
        raise ValueError(f"its stored definition is not valid: {error}") from error
