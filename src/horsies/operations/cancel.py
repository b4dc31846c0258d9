"""Withdraw tasks: those that wait at once, those that run through their worker."""

from collections.abc import Sequence

from horsies.codes import BrokerErrorCode
from horsies.database.operation import Operation
from horsies.database.statement import Receipt
from horsies.observability.events import CancelledEvent
from horsies.observability.hooks import EventHooks
from horsies.operations.filters import TaskFilter
from horsies.operations.paging import for_all_matching
from horsies.operations.statements import cancel_tasks, request_cancel
from horsies.operations.steps import Steps, performed
from horsies.recovery.statements import NamedTask, named_tasks
from horsies.result.broker import Cancellation, CancelOk
from horsies.results.status import state_of
from horsies.states import TaskStatus, read_status


class CancelledTasks:
    """The waiting tasks that a call has cancelled, for the hooks of its process.

    Workers tell of tasks that ran.
    """

    def __init__(self, hooks: EventHooks) -> None:
        self._hooks = hooks
        self._tasks: list[NamedTask] = []

    def note(self, receipts: Sequence[Receipt]) -> Steps[None]:
        """Remember what these receipts say; costs a look without hooks."""
        if self._hooks.of("cancelled"):
            ids = [receipt.task_id for receipt in receipts if receipt.outcome == "cancelled"]
            self._tasks += (yield named_tasks(ids)) if ids else []

    def tell(self) -> None:
        for task in self._tasks:
            self._hooks.tell("cancelled", CancelledEvent(*task))

    async def tell_async(self) -> None:
        for task in self._tasks:
            await self._hooks.tell_async("cancelled", CancelledEvent(*task))


def cancel_one(task_id: str, told: CancelledTasks, *, running: bool) -> Steps[CancelOk]:
    """What became of one task."""
    receipts = yield request_cancel([task_id]) if running else cancel_tasks([task_id])
    yield from told.note(receipts)
    outcome = receipts[0].outcome
    if outcome == "refused":
        return _refused((yield from performed(state_of(task_id))))
    is_waiting = outcome == "cancelled"
    return CancelOk(True, Cancellation.WAITING if is_waiting else Cancellation.RUNNING)


def _refused(status: str | None) -> CancelOk:
    if status is None:
        return CancelOk(False, Cancellation.UNKNOWN)
    if status == TaskStatus.RUNNING.value:
        return CancelOk(False, Cancellation.RUNNING)
    has_ended = read_status(TaskStatus, status).is_terminal
    return CancelOk(False, Cancellation.ENDED if has_ended else Cancellation.IN_WORKFLOW)


def cancel_all(wanted: TaskFilter, told: CancelledTasks, *, running: bool) -> Steps[int]:
    """Cancel all matching tasks; how many were cancelled, or asked to end."""
    return for_all_matching(wanted, lambda ids: _cancel_some(ids, told, running=running))


def _cancel_some(task_ids: Sequence[str], told: CancelledTasks, *, running: bool) -> Steps[int]:
    operation = cancel_these(task_ids, running=running)
    receipts = yield operation.statement
    yield from told.note(receipts)
    return operation.read(receipts)


def cancel_these(task_ids: Sequence[str], *, running: bool) -> Operation[Receipt, int]:
    """How many of these tasks were cancelled or, with `running`, asked to end."""
    return Operation(
        request_cancel(task_ids) if running else cancel_tasks(task_ids),
        lambda rows: sum(row.outcome != "refused" for row in rows),
        BrokerErrorCode.CLEANUP_FAILED,
    )
