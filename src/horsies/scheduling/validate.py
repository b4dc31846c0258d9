"""What must hold of a schedule before it may run (docs/contract/scheduling.md §7)."""

from collections.abc import Iterator
from typing import Protocol

from horsies.codes import ErrorCode
from horsies.config import AppConfig
from horsies.config.schedules import AnySchedule, TaskSchedule
from horsies.errors import ConfigurationError, HorsiesError, RegistryError
from horsies.result import Err
from horsies.scheduling.next_run import read_zone
from horsies.tasks.definition import TaskDefinition
from horsies.tasks.queues import resolve_queue
from horsies.workflows.calls import build_codec
from horsies.workflows.definition import find_definition


class SchedulingApp(Protocol):
    """The part of an app that schedules are checked against."""

    @property
    def config(self) -> AppConfig: ...
    def definition(self, task_name: str) -> TaskDefinition | None: ...


def schedule_problems(app: SchedulingApp, schedule: AnySchedule) -> Iterator[HorsiesError]:
    """Yield everything that keeps a schedule from running."""
    try:
        read_zone(schedule.timezone)
    except ValueError as error:
        yield _refusal(schedule, str(error), "use an IANA name, such as 'Europe/Berlin'")
    if isinstance(schedule, TaskSchedule):
        yield from _task_problems(app, schedule)
        return
    definition = find_definition(schedule.definition_key)
    if definition is None:
        yield RegistryError(
            f"schedule {schedule.name!r}: workflow {schedule.definition_key!r} is not registered",
            ErrorCode.TASK_NOT_REGISTERED,
            help_text="import the module that defines it, or correct definition_key",
        )
        return
    encoded = build_codec(definition.build_with).encode((), dict(schedule.kwargs))
    if isinstance(encoded, Err):
        yield _refusal(schedule, str(encoded.err_value), "let kwargs fit its build_with")


def _task_problems(app: SchedulingApp, schedule: TaskSchedule) -> Iterator[HorsiesError]:
    if schedule.queue_name is not None:
        try:
            resolve_queue(app.config, schedule.queue_name)
        except HorsiesError as error:
            yield _refusal(schedule, error.message, error.help_text or "name a configured queue")
    definition = app.definition(schedule.task_name)
    if definition is None:
        yield RegistryError(
            f"schedule {schedule.name!r}: task {schedule.task_name!r} is not registered",
            ErrorCode.TASK_NOT_REGISTERED,
            help_text="import the module that defines it, or correct task_name",
        )
        return
    encoded = definition.encode_arguments(tuple(schedule.args), dict(schedule.kwargs))
    if isinstance(encoded, Err):
        text = f"arguments do not fit task {schedule.task_name!r}: {encoded.err_value}"
        yield _refusal(schedule, text, "let args and kwargs fit the task's parameters")


def _refusal(schedule: AnySchedule, problem: str, cure: str) -> ConfigurationError:
    return ConfigurationError(
        f"schedule {schedule.name!r}: {problem}",
        ErrorCode.CONFIG_INVALID_SCHEDULE,
        notes=[f"timezone={schedule.timezone!r}, pattern={schedule.pattern!r}"],
        help_text=cure,
    )
