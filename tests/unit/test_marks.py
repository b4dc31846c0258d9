"""Where claims have come to: forward only, but for what a full scan has left behind."""

from datetime import timedelta

import pytest

from horsies.worker.claim_request import (
    ClaimLimits,
    ClaimRequest,
    LaneRequest,
    Mark,
    ScanPosition,
)
from horsies.worker.identity import WorkerIdentity
from horsies.worker.marks import Marks

KEY = ("default", 100, 1)


def request(*, is_full_scan: bool) -> ClaimRequest:
    identity = WorkerIdentity("w", "host", 1, "here")
    lanes = [LaneRequest(starts=10)]
    return ClaimRequest(identity, timedelta(), [], lanes, ClaimLimits(), {}, is_full_scan)


def position(at: str, *, priority: int = 100, may_have_more: bool = False) -> ScanPosition:
    scanned_to_id = "id" if may_have_more else None
    return ScanPosition("default", priority, 1, at, scanned_to_id, may_have_more)


@pytest.mark.parametrize(
    ("is_full_scan", "may_have_more", "moved_to"),
    [(False, True, "2030"), (True, False, "2030"), (True, True, "2020")],
    ids=["a scan from the mark", "a full scan to the end", "a full scan to its limit"],
)
def test_a_mark_goes_back_only_to_where_a_full_scan_stopped(
    is_full_scan: bool, may_have_more: bool, moved_to: str
) -> None:
    marks = Marks()
    marks.by_key[KEY] = Mark("2030")

    marks.move(
        request(is_full_scan=is_full_scan), [position("2020", may_have_more=may_have_more)], [False]
    )

    assert marks.by_key[KEY].enqueued_at == moved_to


def test_many_marks_of_priorities_that_are_gone_are_forgotten_by_a_full_scan() -> None:
    marks = Marks()
    marks.move(
        request(is_full_scan=False), [position("2030", priority=n) for n in range(2_000)], [False]
    )
    assert len(marks.by_key) == 2_000

    marks.move(request(is_full_scan=True), [position("2031", priority=7)], [False])

    assert marks.by_key == {("default", 7, 1): Mark("2031")}
