"""Permits: who may begin, how far a permit reaches, what recovery takes back."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from horsies.worker.claim_request import LaneRequest, PermitRequest
from horsies.worker.held_task import HeldTask
from horsies.worker.lanes import Lane
from horsies.worker.permits import Permits

SHORT_S = 0.005  # ten of them fill the horizon


def lane(slots: int, seconds: float = SHORT_S) -> Lane:
    made = Lane("async", cast("Any", None), slots)
    made.measure("t", seconds, 0)
    return made


def held(number: int | None, lane_number: int = 1) -> HeldTask:
    return HeldTask(
        f"id-{number}", "default", 100, lane_number, "t", None, None, 1, "", "", None, False, 1,
        number,
    )  # fmt: skip


def claim(
    permits: Permits, lanes: Sequence[Lane], count: int
) -> tuple[list[HeldTask], PermitRequest | None]:
    """A claim of the first lane that finds all it asks for; the tasks that may begin at once."""
    asked = [LaneRequest(count), *(LaneRequest(0) for _ in lanes[1:])]
    (request, *_), permit = permits.for_claim(asked)
    free = count if request.free_slots is None else request.free_slots
    numbers = [None] * free + [(request.ahead_from or 0) + n for n in range(count - free)]
    if permit is not None:
        permits.grant(permit, [])
    lanes[0].in_flight += count
    return [task for task in map(held, numbers) if permits.may_begin(task)], permit


def test_what_has_a_free_slot_needs_no_number() -> None:
    lanes = [lane(10)]

    begun, permit = claim(Permits(lanes), lanes, 10)

    assert permit is None
    assert [task.ahead_number for task in begun] == [None] * 10


def test_claim_permits_as_many_as_the_slots_beyond_them() -> None:
    lanes = [lane(10)]

    begun, permit = claim(Permits(lanes), lanes, 50)

    assert permit is not None
    assert permit.permitted == [10]
    assert [task.ahead_number for task in begun[10:]] == list(range(1, 11))


def test_brief_tasks_are_not_held_back() -> None:
    lanes = [lane(10, 0.0001)]

    begun, permit = claim(Permits(lanes), lanes, 500)

    assert (len(begun), permit) == (500, None)


def test_ends_permit_what_the_slots_may_reach_meanwhile() -> None:
    lanes = [lane(10)]
    permits = Permits(lanes)
    begun, _ = claim(permits, lanes, 200)
    for task in begun:
        permits.ended(task)
    lanes[0].in_flight -= len(begun)

    permit = permits.for_ends()

    assert permit is not None
    admitted = permits.grant(permit, [])
    assert [task.ahead_number for task in admitted.permitted] == list(range(11, 101))
    assert permits.for_ends() is None, "as long as half of it is not used up"


def test_waiting_tasks_begin_although_nothing_ends() -> None:
    lanes = [lane(10)]
    permits = Permits(lanes)
    begun, _ = claim(permits, lanes, 40)
    lanes[0].in_flight -= len(begun)

    permit = permits.for_waiting()

    assert permit is not None
    assert len(permits.grant(permit, []).permitted) == 20


def test_what_recovery_has_taken_back_never_begins() -> None:
    lanes = [lane(10)]
    permits = Permits(lanes)
    begun, _ = claim(permits, lanes, 40)
    lanes[0].in_flight -= len(begun)
    permit = permits.for_waiting()
    assert permit is not None

    admitted = permits.grant(permit, [25])

    assert [task.ahead_number for task in admitted.voided] == list(range(11, 26))
    assert [task.ahead_number for task in admitted.permitted] == list(range(26, 31))


@pytest.mark.parametrize("voided", [[], [None], [None, None, 7]], ids=["none", "null", "foreign"])
def test_voids_of_no_lane_of_ours_change_nothing(voided: list[int | None]) -> None:
    lanes = [lane(10)]
    permits = Permits(lanes)
    claim(permits, lanes, 40)

    assert permits.grant(PermitRequest("finish", 1, 0, [40]), voided).voided == []


def test_withdrawn_task_waits_no_more() -> None:
    lanes = [lane(10)]
    permits = Permits(lanes)
    claim(permits, lanes, 40)
    task = held(15)

    assert permits.is_waiting(task)
    assert permits.withdraw(task)
    assert not permits.withdraw(task)
    assert len(permits.withdraw_all()) == 19


def test_permit_names_the_last_that_is_known_to_be_committed() -> None:
    lanes = [lane(10)]
    permits = Permits(lanes)
    _, first = claim(permits, lanes, 40)
    (_, lost), (_, again) = (permits.for_claim([LaneRequest(40)]) for _ in range(2))

    assert first is not None
    assert lost is None, "what waits comes first, and may not begin yet"
    assert again is None
    lanes[0].in_flight = 20
    begun = [permits.for_waiting() for _ in range(2)]
    assert [(one.number, one.last_number) for one in begun if one] == [(1, 0), (2, 0)]


def test_tasks_that_arrive_when_all_others_have_ended_do_not_wait_for_an_end() -> None:
    """Their claim was asked for by a full lane and answered late."""
    lanes = [lane(2)]
    permits = Permits(lanes)
    lanes[0].in_flight = 100
    (request,), permit = permits.for_claim([LaneRequest(5)])
    lanes[0].in_flight = 0
    if permit is not None:
        permits.grant(permit, [])

    lanes[0].in_flight += 5
    taken = [held((request.ahead_from or 0) + n) for n in range(5)]
    begun = [task for task in taken if permits.may_begin(task)]

    assert begun == []
    assert permits.are_urgent()
    urgent = permits.for_waiting()
    assert urgent is not None
    assert permits.grant(urgent, []).permitted == taken[:4]
    assert not permits.are_urgent()
