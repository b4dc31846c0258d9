"""Withdraw tasks: those that wait at once, those that run through their worker."""

from collections.abc import Sequence

from horsies.codes import BrokerErrorCode
from horsies.database.operation import Operation
from horsies.database.statement import Receipt
from horsies.operations.filters import TaskFilter
from horsies.operations.paging import for_all_matching
from horsies.operations.statements import cancel_tasks, request_cancel
from horsies.operations.steps import Steps
from horsies.result.broker import Cancellation, CancelOk
from horsies.states import TaskStatus


def cancel_one(task_id: str, *, running: bool) -> Operation[Receipt, str]:
    """'cancelled', 'requested' from its worker, or 'refused'."""
    return Operation(
        request_cancel([task_id]) if running else cancel_tasks([task_id]),
        lambda rows: rows[0].outcome,
        BrokerErrorCode.CLEANUP_FAILED,
    )


def cancellation(outcome: str, status: str | None) -> CancelOk:
    """What became of a call: the outcome of `cancel_one`, and how a refused task stands."""
    if outcome != "refused":
        is_waiting = outcome == "cancelled"
        return CancelOk(True, Cancellation.WAITING if is_waiting else Cancellation.RUNNING)
    if status is None:
        return CancelOk(False, Cancellation.UNKNOWN)
    if status == TaskStatus.RUNNING.value:
        return CancelOk(False, Cancellation.RUNNING)
    has_ended = TaskStatus(status).is_terminal
    return CancelOk(False, Cancellation.ENDED if has_ended else Cancellation.IN_WORKFLOW)


def cancel_all(wanted: TaskFilter, *, running: bool) -> Steps[int]:
    """Cancel all matching tasks; how many were cancelled, or asked to end."""
    return for_all_matching(wanted, lambda ids: cancel_these(ids, running=running))


def cancel_these(task_ids: Sequence[str], *, running: bool) -> Operation[Receipt, int]:
    """How many of these tasks were cancelled or, with `running`, asked to end."""
    return Operation(
        request_cancel(task_ids) if running else cancel_tasks(task_ids),
        lambda rows: sum(row.outcome != "refused" for row in rows),
        BrokerErrorCode.CLEANUP_FAILED,
    )
