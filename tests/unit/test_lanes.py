"""How much a lane takes: what its slots work off soon, in batches worth a statement."""

from horsies.executors.in_loop import InLoopExecutor
from horsies.result import TaskError, TaskResult
from horsies.worker.child_main import AppDefinitions
from horsies.worker.lanes import Lane, make_lanes
from horsies.worker.settings import WorkerConfig
from support.apps import make_app

SLOTS = 8


def new_lane(*, duration_s: float | None = None, size: int = 200, in_flight: int = 0) -> Lane:
    definitions = AppDefinitions(make_app("postgresql://nowhere/none"), None)
    lane = Lane("async", InLoopExecutor(definitions, SLOTS), SLOTS)
    if duration_s is not None:
        lane.measure("known", duration_s, size)
    lane.in_flight = in_flight
    return lane


def test_takes_no_more_than_its_slots_before_anything_is_known() -> None:
    assert new_lane().room(may_prefetch=True) == SLOTS


def test_short_tasks_are_taken_ahead_and_long_ones_are_not() -> None:
    assert new_lane(duration_s=0.01).room(may_prefetch=True) == 5 * SLOTS
    assert new_lane(duration_s=1.0).room(may_prefetch=True) == SLOTS
    assert new_lane(duration_s=0.01).room(may_prefetch=False) == SLOTS


def test_large_results_are_not_taken_ahead() -> None:
    assert new_lane(duration_s=0.001, size=1_000_000).room(may_prefetch=True) == 8 * SLOTS
    assert new_lane(duration_s=0.001, size=50_000_000).room(may_prefetch=True) == SLOTS


def test_one_large_result_among_small_ones_is_forgotten_slowly() -> None:
    lane = new_lane(duration_s=0.001, size=50_000_000)
    for _ in range(20):
        lane.measure("known", 0.001, 200)
    assert lane.room(may_prefetch=True) == SLOTS
    for _ in range(200):
        lane.measure("known", 0.001, 200)
    assert lane.room(may_prefetch=True) == 50 * SLOTS


def test_few_rows_are_not_claimed_while_work_is_waiting() -> None:
    full = 5 * SLOTS

    assert new_lane(duration_s=0.01, in_flight=full - 1).room(may_prefetch=True) == 0
    assert new_lane(duration_s=0.01, in_flight=full - full // 4).room(may_prefetch=True) == 10


def test_free_slot_is_filled_at_once() -> None:
    for duration_s in (0.01, 1.0):
        assert new_lane(duration_s=duration_s, in_flight=SLOTS - 1).room(may_prefetch=True) > 0
    assert new_lane(in_flight=SLOTS - 1).room(may_prefetch=False) == 1


def test_only_names_known_to_be_short_may_wait_behind_others() -> None:
    lane = new_lane(duration_s=0.01)
    lane.measure("long", 0.5, 200)

    assert lane.may_wait("known")
    assert not lane.may_wait("long")
    assert not lane.may_wait("never seen")


def test_one_long_name_ends_taking_ahead_until_it_is_forgotten() -> None:
    lane = new_lane(duration_s=0.001)
    lane.measure("long", 0.5, 200)
    assert lane.room(may_prefetch=True) == SLOTS

    for _ in range(200):
        lane.measure("known", 0.001, 200)

    assert lane.room(may_prefetch=True) > 10 * SLOTS


def test_stuck_lane_takes_nothing_ahead() -> None:
    lane = new_lane(duration_s=0.001, in_flight=SLOTS)
    assert lane.room(may_prefetch=True) > 0

    lane.is_stuck = True

    assert lane.room(may_prefetch=True) == 0


def test_all_lanes_together_take_no_more_than_a_thousand_ahead() -> None:
    app = make_app("postgresql://nowhere/none")

    @app.task("coroutine")
    async def coroutine() -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    @app.task("thread", execution="blocking")
    def thread() -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    lanes = make_lanes(
        app, WorkerConfig(processes=4, concurrency=500, threads=500), None, "worker-1"
    ).all
    for lane in lanes:
        lane.measure("known", 0.0001, 200)

    ahead = sum(lane.room(may_prefetch=True) - lane.slots for lane in lanes)

    assert len(lanes) == 3
    assert 900 <= ahead <= 1_000
