"""From a slot to the statement that sends its task or starts its workflow."""

from datetime import datetime, timedelta
from typing import Any, Protocol

from horsies.config.schedules import TaskSchedule, WorkflowSchedule
from horsies.database.statement import Statement
from horsies.errors import HorsiesError
from horsies.observability.hooks import EventHooks
from horsies.observability.traces import Tracing
from horsies.result import Err
from horsies.scheduling.slots import jitter_s, slot_id
from horsies.scheduling.validate import SchedulingApp
from horsies.sending.options import SendOptions
from horsies.sending.prepared import PreparedSend, SendingBroker
from horsies.sending.statements import enqueue_tasks
from horsies.workflows.definition import find_definition
from horsies.workflows.rows import rows_of
from horsies.workflows.spec import SpecBroker, WorkflowSpec
from horsies.workflows.statements import start_workflows


class ScheduleBroker(SendingBroker, SpecBroker, Protocol):
    """The part of a broker that schedules are sent with."""


class ScheduleSendingApp(SchedulingApp, Protocol):
    """The part of an app that schedules are sent with."""

    @property
    def on(self) -> EventHooks: ...
    @property
    def tracing(self) -> Tracing | None: ...
    def get_broker(self) -> ScheduleBroker: ...
    def are_sends_suppressed(self) -> bool: ...


def build_workflow(app: ScheduleSendingApp, schedule: WorkflowSchedule) -> WorkflowSpec[Any]:
    """The workflow that a schedule starts. Runs user code, which may take any time and raise."""
    definition = find_definition(schedule.definition_key)
    if definition is None:
        raise HorsiesError(f"workflow {schedule.definition_key!r} is not registered")
    return definition.build_with(app, **schedule.kwargs)


def start_statement(name: str, slot: datetime, spec: WorkflowSpec[Any]) -> Statement[Any]:
    """What starts the workflow of a slot."""
    return start_workflows([rows_of(spec, slot_id(name, slot), slot)])


def send_statement(
    app: ScheduleSendingApp, schedule: TaskSchedule, slot: datetime, *, by_hand: bool = False
) -> Statement[Any]:
    """What sends the task of a slot; by hand, without its jitter and deadline."""
    definition = app.definition(schedule.task_name)
    if definition is None:
        raise HorsiesError(f"task {schedule.task_name!r} is not registered")
    deadline_s = None if by_hand else schedule.deadline_seconds
    options = SendOptions(
        queue_name=schedule.queue_name,
        good_until=None if deadline_s is None else slot + timedelta(seconds=deadline_s),
    )
    prepared = PreparedSend(app, definition, options)
    task_id = slot_id(schedule.name, slot)
    row = prepared.problem or prepared.row(
        task_id, tuple(schedule.args), dict(schedule.kwargs), slot
    )
    if isinstance(row, Err):
        raise HorsiesError(row.err_value.message)
    delay_s = 0.0 if by_hand else jitter_s(schedule.name, slot, schedule.jitter_seconds)
    return enqueue_tasks([row.ok_value._replace(delay_s=delay_s or None)])
