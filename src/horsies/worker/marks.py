"""Where the claims of a worker have come to, so that the next ones start there (decision 0003)."""

from collections import Counter
from collections.abc import Iterable, Sequence

from horsies.worker.claim_request import ClaimRequest, Mark, MarkKey, ScanPosition
from horsies.worker.held_task import HeldTask

# Far more than queues have priorities: such come from rows written by hand.
_MANY = 1_000


class Marks:
    """One mark for each queue, priority and lane that had tasks."""

    def __init__(self) -> None:
        self.by_key: dict[MarkKey, Mark] = {}

    def move(
        self, request: ClaimRequest, rows: Sequence[HeldTask | ScanPosition], filled: Sequence[bool]
    ) -> None:
        """Forward only; but a full scan that filled a lane, or ended at its limit, has more behind.

        Of many marks, those of priorities that a full scan did not meet are forgotten.
        """
        if request.is_full_scan and len(self.by_key) > _MANY:
            met = {(row.queue_name, row.priority, row.lane) for row in rows}
            self.by_key = {key: mark for key, mark in self.by_key.items() if key in met}
        for row in rows:
            key, mark = (row.queue_name, row.priority, row.lane), row.mark
            is_unfinished = isinstance(row, ScanPosition) and row.may_have_more
            may_go_back = request.is_full_scan and (filled[row.lane - 1] or is_unfinished)
            if may_go_back or mark >= self.by_key.get(key, mark):
                self.by_key[key] = mark


def furthest(tasks: Sequence[HeldTask]) -> Iterable[HeldTask]:
    """The last one of each queue, priority and lane: tasks come in claim order."""
    return {(task.queue_name, task.priority, task.lane): task for task in tasks}.values()


def filled_lanes(
    request: ClaimRequest, tasks: Sequence[HeldTask], *, is_cut_short: bool
) -> list[bool]:
    """Per lane, whether it gave all that was asked for, or all that one claim may carry."""
    found = Counter(task.lane for task in tasks)
    return [
        is_cut_short or found[number] >= lane.room
        for number, lane in enumerate(request.lanes, start=1)
    ]
