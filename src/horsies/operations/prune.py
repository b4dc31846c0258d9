"""Delete old ended tasks now, in the batches that the reaper uses."""

from collections.abc import Sequence
from datetime import timedelta

from horsies.operations.filters import ENDED, TaskFilter
from horsies.operations.listing import TaskCount, count_steps
from horsies.operations.statements import ping
from horsies.operations.steps import RefusedError, Steps
from horsies.recovery.statements import BATCH, prune_tasks


def prune_steps(
    older_than: timedelta, statuses: Sequence[str], *, dry_run: bool
) -> Steps[TaskCount]:
    """Delete what ended so long ago, or count it; the database's clock decides."""
    wanted = [status.upper() for status in statuses]
    if unknown := [status for status in wanted if status not in ENDED]:
        raise RefusedError(f"only ended tasks are pruned ({', '.join(ENDED)}), not {unknown[0]}")
    if older_than < timedelta():
        raise RefusedError("the age must not be negative")
    if dry_run:
        ((now, _),) = yield ping()
        filter_ = TaskFilter(tuple(wanted), ended_until=now - older_than)
        return (yield from count_steps(filter_))
    total = 0
    for status in wanted:
        deleted = BATCH
        while deleted == BATCH:
            ((deleted,),) = yield prune_tasks(status, older_than)
            total += deleted
    return TaskCount(total, is_least=False)
