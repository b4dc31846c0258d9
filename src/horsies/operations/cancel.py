"""Withdraw tasks: those that wait at once, those that run through their worker."""

from collections.abc import Sequence

from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.database.operation import Operation
from horsies.database.statement import Receipt
from horsies.operations.filters import TaskFilter
from horsies.operations.paging import for_all_matching
from horsies.operations.statements import cancel_tasks, request_cancel
from horsies.result.broker import BrokerResult


def cancel_one(task_id: str, *, running: bool) -> Operation[Receipt, bool]:
    """Whether the task was cancelled or, with `running`, its worker was asked to end it."""
    return cancel_these([task_id], running=running).map(bool)


def cancel_all(database: Database, wanted: TaskFilter, *, running: bool) -> BrokerResult[int]:
    """Cancel all matching tasks; how many were cancelled, or asked to end."""
    return for_all_matching(database, wanted, lambda ids: cancel_these(ids, running=running))


def cancel_these(task_ids: Sequence[str], *, running: bool) -> Operation[Receipt, int]:
    """How many of these tasks were cancelled or, with `running`, asked to end."""
    return Operation(
        request_cancel(task_ids) if running else cancel_tasks(task_ids),
        lambda rows: sum(row.outcome != "refused" for row in rows),
        BrokerErrorCode.CLEANUP_FAILED,
    )
