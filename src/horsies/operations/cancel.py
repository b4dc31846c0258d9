"""Withdraw tasks: those that wait at once, those that run through their worker."""

from collections.abc import Sequence

from horsies.codes import BrokerErrorCode
from horsies.database.operation import Operation
from horsies.database.statement import Receipt
from horsies.operations.filters import TaskFilter
from horsies.operations.paging import for_all_matching
from horsies.operations.statements import cancel_tasks, request_cancel
from horsies.operations.steps import Steps


def cancel_one(task_id: str, *, running: bool) -> Operation[Receipt, bool]:
    """Whether the task was cancelled or, with `running`, its worker was asked to end it."""
    return _cancel([task_id], running=running).map(bool)


def cancel_all(wanted: TaskFilter, *, running: bool) -> Steps[int]:
    """Cancel all matching tasks; how many were cancelled, or asked to end."""
    return for_all_matching(wanted, lambda ids: _cancel(ids, running=running))


def _cancel(task_ids: Sequence[str], *, running: bool) -> Operation[Receipt, int]:
    return Operation(
        request_cancel(task_ids) if running else cancel_tasks(task_ids),
        lambda rows: sum(row.outcome != "refused" for row in rows),
        BrokerErrorCode.CLEANUP_FAILED,
    )
