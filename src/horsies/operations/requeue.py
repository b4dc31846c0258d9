"""Run ended tasks once more: the same row again (requeue), or a new row with its input (rerun)."""

from collections.abc import Sequence
from datetime import datetime

from horsies.clock import utc_now
from horsies.codes import BrokerErrorCode
from horsies.database.operation import Operation
from horsies.database.statement import Receipt, Scalar
from horsies.ids import new_id
from horsies.operations.filters import TaskFilter
from horsies.operations.paging import for_all_matching
from horsies.operations.statements import requeue_tasks, rerun_task
from horsies.operations.steps import Steps, performed


def requeue_one(task_id: str, *, include_completed: bool) -> Operation[Receipt, bool]:
    """Whether the task went back to its queue."""
    return requeue_these([task_id], include_completed=include_completed).map(bool)


def requeue_all(wanted: TaskFilter) -> Steps[int]:
    """Put all matching ended tasks back in their queues; return how many."""
    return for_all_matching(
        wanted, lambda ids: performed(requeue_these(ids, include_completed=False))
    )


def rerun_one(task_id: str, good_until: datetime | None) -> Operation[Scalar, str | None]:
    """The id of the new task, or `None` when there is no such ended one."""
    return Operation(
        rerun_task(task_id, new_id(), utc_now(), good_until),
        lambda rows: rows[0].value,
        BrokerErrorCode.CLEANUP_FAILED,
    )


def requeue_these(task_ids: Sequence[str], *, include_completed: bool) -> Operation[Receipt, int]:
    """How many of these tasks went back to their queues."""
    return Operation(
        requeue_tasks(task_ids, include_completed=include_completed),
        lambda rows: sum(row.outcome == "requeued" for row in rows),
        BrokerErrorCode.CLEANUP_FAILED,
    )
