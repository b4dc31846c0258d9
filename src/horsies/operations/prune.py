"""Delete ended tasks by their age, by hand; the reaper's retention does the same by itself."""

from datetime import timedelta

from horsies.codes import BrokerErrorCode
from horsies.database.operation import Operation
from horsies.database.statement import Scalar
from horsies.operations.statements import prune_tasks

BATCH = 1_000


def prune_some(status: str, older_than: timedelta) -> Operation[Scalar, int]:
    """Delete a batch of the oldest ended tasks with their attempts; how many went."""
    return Operation(
        prune_tasks(status, older_than, BATCH),
        lambda rows: int(rows[0].value),
        BrokerErrorCode.CLEANUP_FAILED,
    )
