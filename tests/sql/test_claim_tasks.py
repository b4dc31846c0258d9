"""horsies_claim_tasks_v2: PENDING -> CLAIMED or RUNNING."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from horsies.worker.claim_request import (
    ClaimRow,
    Counts,
    CutShort,
    LaneRequest,
    Mark,
    MarkKey,
    ScanPosition,
)
from horsies.worker.held_task import HeldTask
from support.database import Database, at, connect


def names(rows: list[HeldTask]) -> list[str]:
    return [row.task_id for row in rows]


def positions(rows: Sequence[HeldTask | ClaimRow]) -> list[ScanPosition]:
    return [row for row in rows if isinstance(row, ScanPosition)]


def two_lanes(first: LaneRequest, second: LaneRequest) -> list[LaneRequest]:
    """The task name "a" belongs to the second lane, every other name to the first."""
    return [replace(first, except_names=["a"]), replace(second, only_names=["a"])]


@pytest.mark.seed("S2", "S14", "S45", "S101", "S105")
def test_claim_that_waits_sets_flag_time_owner_and_lease(db: Database) -> None:
    task_id = db.insert()

    db.claim(0, waiting=1)

    row = db.task(task_id)
    assert row["status"] == "CLAIMED"
    assert row["claimed"] is True
    assert row["claimed_at"] == row["updated_at"] == at(0)
    assert row["claimed_by_worker_id"] == "worker-a"
    assert row["claim_expires_at"] == at(60)
    assert (row["started_at"], row["worker_pid"]) == (None, None)


@pytest.mark.seed("S3", "S17", "S46", "S72", "S104")
def test_claim_with_a_free_slot_starts_at_once_in_the_named_child(db: Database) -> None:
    task_id = db.insert(args="[1]", kwargs='{"a": 2}', task_options="{}")

    (claim,) = db.claim(1)

    row = db.task(task_id)
    assert row["status"] == "RUNNING"
    assert (row["claimed"], row["claim_expires_at"]) == (False, None)
    assert row["claimed_at"] == row["started_at"] == row["updated_at"] == at(0)
    assert row["claimed_by_worker_id"] == "worker-a"
    assert (row["worker_pid"], row["worker_hostname"]) == (2001, "host-a")
    assert row["worker_process_name"] == "worker-2001"
    assert (claim.args, claim.kwargs, claim.task_options) == ("[1]", '{"a": 2}', "{}")
    assert (claim.attempt, claim.pid, claim.lane) == (1, 2001, 1)


def test_rows_beyond_the_free_slots_wait_claimed(db: Database) -> None:
    for _ in range(5):
        db.insert()

    claims = db.claim(2, waiting=2)

    assert [claim.pid for claim in claims] == [2001, 2002, None, None]
    assert db.statuses() == {"RUNNING": 2, "CLAIMED": 2, "PENDING": 1}


@pytest.mark.seed("S1", "S95")
@pytest.mark.parametrize("is_analyzed", [False, True], ids=["no statistics", "of an empty table"])
def test_order_is_priority_then_time_then_id(db: Database, *, is_analyzed: bool) -> None:
    if is_analyzed:  # the planner believes that there is hardly a row to begin with
        db.execute("analyze horsies_tasks")
    db.insert(id="d", priority=5, enqueued_at=at(-1))
    db.insert(id="c", priority=5, enqueued_at=at(-9))
    db.insert(id="b", priority=1, enqueued_at=at(-1))
    db.insert(id="a", priority=5, enqueued_at=at(-1))
    db.insert(id="e", priority=-2_000_000_000, enqueued_at=at(0))

    assert names(db.claim(5)) == ["e", "b", "c", "a", "d"]


def test_better_queue_is_served_first_whatever_the_row_priority(db: Database) -> None:
    db.insert(id="low", queue_name="low", priority=1)
    db.insert(id="high-1", queue_name="high", priority=90)
    db.insert(id="high-2", queue_name="high", priority=99)

    claims = db.claim(3, queues={"high": None, "low": None})

    assert names(claims) == ["high-1", "high-2", "low"]


def test_queues_not_served_are_left_alone(db: Database) -> None:
    db.insert(queue_name="other")

    assert db.claim(5) == []


@pytest.mark.seed("S33", "S44", "S53", "S64")
@pytest.mark.parametrize(
    ("columns", "is_claimable"),
    [
        pytest.param({"enqueued_at": at(0)}, True, id="due now"),
        pytest.param({"enqueued_at": at(0.001)}, False, id="not due yet"),
        pytest.param({"next_retry_at": at(0)}, True, id="retry due"),
        pytest.param({"next_retry_at": at(1)}, False, id="retry not due"),
        pytest.param({"good_until": at(0.001)}, True, id="before its deadline"),
        pytest.param({"good_until": at(0)}, False, id="at its deadline"),
        pytest.param({"good_until": at(-1)}, False, id="past its deadline"),
        pytest.param({"status": "RUNNING"}, False, id="running"),
        pytest.param({"status": "COMPLETED"}, False, id="completed"),
        pytest.param({"status": "CANCELLED"}, False, id="cancelled"),
    ],
)
def test_only_what_may_run_now_is_claimed(
    db: Database, columns: dict[str, Any], is_claimable: bool
) -> None:
    db.insert(**columns)

    assert len(db.claim(1)) == is_claimable


@pytest.mark.seed("S15")
def test_claimed_row_is_skipped_by_others_until_its_lease_ends(db: Database) -> None:
    task_id = db.claimed().task_id

    db.set_now(60)
    before = db.claim(1, owner_id="worker-b")
    db.set_now(60.001)
    (after,) = db.claim(1, owner_id="worker-b")

    assert before == []
    assert after.task_id == task_id
    assert db.task(task_id)["claimed_by_worker_id"] == "worker-b"
    assert db.task(task_id)["claimed_at"] == at(60.001)


def test_lease_takeover_needs_a_full_scan(db: Database) -> None:
    db.claimed()
    db.set_now(61)

    assert db.claim(1, owner_id="worker-b", is_full_scan=False) == []


def test_running_row_is_never_taken_over(db: Database) -> None:
    db.running()
    db.set_now(1_000_000)

    assert db.claim(1, owner_id="worker-b") == []


def test_batch_limit_is_per_queue_and_shuts_out_worse_queues(db: Database) -> None:
    for position in range(3):
        db.insert(id=f"high-{position}", queue_name="high")
    db.insert(id="low", queue_name="low")

    first = db.claim(10, queues={"high": None, "low": None}, batch_limit=2)
    second = db.claim(10, queues={"high": None, "low": None}, batch_limit=2)

    assert names(first) == ["high-0", "high-1"]
    assert names(second) == ["high-2", "low"]


def test_queue_cap_counts_running_and_live_claims_of_all_workers(db: Database) -> None:
    db.running(queue_name="q")
    db.claimed(queue_name="q")
    for _ in range(3):
        db.insert(queue_name="q")

    claims = db.claim(5, owner_id="worker-b", queues={"q": 3})

    assert len(claims) == 1


def test_soft_queue_cap_counts_running_only(db: Database) -> None:
    db.claimed(queue_name="q")
    for _ in range(3):
        db.insert(queue_name="q")

    claims = db.claim(5, queues={"q": 2}, counts_claims=False)

    assert len(claims) == 2


def test_capped_queue_lets_worse_queues_through(db: Database) -> None:
    db.running(queue_name="high")
    db.insert(id="high", queue_name="high")
    db.insert(id="low", queue_name="low")

    claims = db.claim(5, queues={"high": 1, "low": None})

    assert names(claims) == ["low"]


@pytest.mark.parametrize("batch_limit", [1, 2])
def test_capped_queue_that_gave_no_full_batch_lets_worse_queues_through(
    db: Database, batch_limit: int
) -> None:
    db.running(queue_name="high")
    db.insert(id="high", queue_name="high")
    db.insert(id="low", queue_name="low")

    claims = db.claim(5, queues={"high": 1, "low": None}, batch_limit=batch_limit)

    assert names(claims) == ["low"]


def test_cluster_cap_counts_all_queues(db: Database) -> None:
    db.running(queue_name="elsewhere")
    for _ in range(5):
        db.insert()

    assert len(db.claim(10, cluster_cap=3)) == 2
    assert db.claim(10, cluster_cap=3) == []


def claim_on(
    db: Database, counts: str | None, count: int = 5, **fields: Any
) -> tuple[list[HeldTask], str]:
    """A claim that builds on earlier counts, and its own counts."""
    rows = db.claim_pass(
        lanes=[LaneRequest(count)], counts=counts, is_full_scan=counts is None, **fields
    )
    (found,) = [row.text for row in rows if isinstance(row, Counts)]
    return [row for row in rows if isinstance(row, HeldTask)], found


CAPS = pytest.mark.parametrize(
    "caps",
    [
        pytest.param({"queues": {"q": 3}}, id="of a queue"),
        pytest.param({"queues": {"q": None}, "cluster_cap": 3}, id="of the cluster"),
    ],
)


@CAPS
def test_count_that_builds_on_an_earlier_one_misses_nothing(
    db: Database, caps: dict[str, Any]
) -> None:
    for _ in range(12):
        db.insert(queue_name="q")
    by_hand = db.insert(queue_name="q", status="RUNNING")

    first, counts = claim_on(db, None, 1, **caps)
    db.set_now(1)
    other, _ = claim_on(db, None, 1, owner_id="worker-b", **caps)
    db.set_now(2)
    full, counts = claim_on(db, counts, **caps)
    db.set_now(3)
    db.complete(*first)
    after_old_end, counts = claim_on(db, counts, **caps)
    db.set_now(4)
    db.fail(other[0], owner="worker-b")
    db.execute("update horsies_tasks set status = 'COMPLETED' where id = %s", by_hand)
    after_two_ends, counts = claim_on(db, counts, **caps)
    full_again, _ = claim_on(db, counts, **caps)

    taken = [first, other, full, after_old_end, after_two_ends, full_again]
    assert [len(tasks) for tasks in taken] == [1, 1, 0, 1, 2, 0]


@CAPS
def test_count_is_right_beyond_the_rows_it_remembers_by_id(
    db: Database, caps: dict[str, Any]
) -> None:
    caps = {"queues": {"q": 200 if caps["queues"]["q"] else None}, "cluster_cap": 200}
    for _ in range(300):
        db.insert(queue_name="q")
    counts: str | None = None
    taken: list[HeldTask] = []
    for second in range(20):
        db.set_now(second)
        tasks, counts = claim_on(db, counts, 10, **caps)
        taken += tasks

    none_left, counts = claim_on(db, counts, 10, **caps)
    db.complete(*taken[0:200:40])
    five_left, counts = claim_on(db, counts, 10, **caps)

    assert (len(taken), len(none_left), len(five_left)) == (200, 0, 5)


def test_count_after_the_clock_was_set_back_counts_all(db: Database) -> None:
    for _ in range(3):
        db.insert(queue_name="q", enqueued_at=at(-100))
    _, counts = claim_on(db, None, 1, queues={"q": 2})
    db.set_now(-50)
    claim_on(db, None, 1, owner_id="worker-b", queues={"q": 2})

    tasks, _ = claim_on(db, counts, queues={"q": 2})

    assert tasks == []


def test_claim_whose_lease_passed_frees_its_place_under_a_cap(db: Database) -> None:
    db.claimed(queue_name="q", enqueued_at=at(-20))
    db.insert(queue_name="q")
    db.set_now(61)

    claims = db.claim(5, queues={"q": 1}, is_full_scan=False)

    assert len(claims) == 1


@pytest.mark.seed("S60")
def test_lanes_have_budgets_of_their_own(db: Database) -> None:
    for position in range(3):
        db.insert(id=f"process-{position}", task_name="p")
        db.insert(id=f"async-{position}", task_name="a")

    claims = db.claim(lanes=two_lanes(LaneRequest(1, child_pids=[2001]), LaneRequest(2)))

    found = {(claim.task_id, claim.lane, claim.pid) for claim in claims}
    assert found == {("process-0", 1, 2001), ("async-0", 2, 1000), ("async-1", 2, 1000)}


def test_full_lane_does_not_hide_the_other_behind_it(db: Database) -> None:
    for position in range(50):
        db.insert(id=f"a-{position:02}", task_name="p", enqueued_at=at(-100))
    db.insert(id="z", task_name="a", enqueued_at=at(-1))

    claims = db.claim(lanes=two_lanes(LaneRequest(0), LaneRequest(1)))

    assert names(claims) == ["z"]


def test_lanes_share_what_a_cap_leaves_by_age(db: Database) -> None:
    db.insert(id="new", task_name="p", queue_name="q", enqueued_at=at(-1))
    db.insert(id="old", task_name="a", queue_name="q", enqueued_at=at(-9))

    claims = db.claim(lanes=two_lanes(LaneRequest(1), LaneRequest(1)), queues={"q": 1})

    assert names(claims) == ["old"]


def test_lane_whose_rows_a_cap_left_behind_is_not_scanned_through(db: Database) -> None:
    db.insert(id="new", task_name="a", queue_name="q", enqueued_at=at(-5))
    for position in range(3):
        db.insert(id=f"old-{position}", task_name="p", queue_name="q", enqueued_at=at(-9))

    rows = db.claim_pass(lanes=two_lanes(LaneRequest(9), LaneRequest(9)), queues={"q": 3})

    assert not positions(rows), "a position would move the mark past 'new'"
    assert [row.lane for row in rows if isinstance(row, HeldTask)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        pytest.param([40, 40, 40], 3, id="the row that reaches it is the last"),
        pytest.param([500, 4, 4], 1, id="one row always"),
        pytest.param([48, 52, 4], 2, id="reached exactly"),
        pytest.param([8, 8, 8], 3, id="not reached"),
    ],
)
def test_claim_ends_at_the_byte_limit(db: Database, sizes: list[int], taken: int) -> None:
    for position, size in enumerate(sizes):
        db.insert(id=f"{position}", args="x" * (size // 2), kwargs="é" * (size // 4))
    db.insert(id="next", queue_name="next")

    rows = db.claim_pass(
        lanes=[LaneRequest(9)], queues={"default": None, "next": None}, byte_limit=100
    )

    tasks = [row for row in rows if isinstance(row, HeldTask)]
    is_cut_short = sum(sizes) >= 100
    assert len(tasks) == (taken if is_cut_short else taken + 1)
    assert [row for row in rows if isinstance(row, CutShort)] == [CutShort()] * is_cut_short
    assert bool(positions(rows)) is not is_cut_short, "a mark would move past what was left"
    assert db.statuses().get("PENDING", 0) == len(sizes) + 1 - len(tasks)


def test_lanes_share_the_bytes_by_age(db: Database) -> None:
    for name, seconds in (("p", -1), ("a", -9), ("p", -5)):
        db.insert(id=f"{name}{seconds}", task_name=name, args="x" * 60, enqueued_at=at(seconds))

    claims = db.claim(lanes=two_lanes(LaneRequest(9), LaneRequest(9)), byte_limit=100)

    assert sorted(names(claims)) == ["a-9", "p-5"]


def test_bytes_are_counted_across_queues_and_priorities(db: Database) -> None:
    for queue, priority in (("high", 1), ("high", 2), ("low", 1), ("low", 2)):
        db.insert(id=f"{queue}-{priority}", queue_name=queue, priority=priority, args="x" * 40)

    claims = db.claim(9, queues={"high": None, "low": None}, byte_limit=100)

    assert names(claims) == ["high-1", "high-2", "low-1"]


def test_unknown_names_belong_to_the_first_lane(db: Database) -> None:
    db.insert(task_name="from another release")

    (claim,) = db.claim(lanes=two_lanes(LaneRequest(1), LaneRequest(0)))

    assert claim.lane == 1


def test_marks_skip_what_earlier_passes_have_seen(db: Database) -> None:
    db.insert(id="a", enqueued_at=at(-9))
    db.insert(id="b", enqueued_at=at(-8))
    marks = {("default", 100, 1): Mark(at(-9), "a")}

    assert names(db.claim(5, is_full_scan=False, marks=marks)) == ["b"]


def test_new_priority_before_a_marked_one_is_found(db: Database) -> None:
    db.insert(id="marked", priority=50, enqueued_at=at(-5))
    db.insert(id="urgent", priority=1)
    db.insert(id="late", priority=99)
    marks = {("default", 50, 1): Mark(at(-9), "x")}

    claims = db.claim(5, is_full_scan=False, marks=marks)

    assert names(claims) == ["urgent", "marked", "late"]


@pytest.mark.seed("S98")
@pytest.mark.parametrize(
    ("workflow_status", "is_claimable"),
    [("RUNNING", True), ("PAUSED", False), ("CANCELLED", False)],
)
def test_rows_of_stopped_workflows_are_not_claimed(
    db: Database, workflow_status: str, is_claimable: bool
) -> None:
    task_id = workflow_task(db, workflow_status)

    assert names(db.claim(1)) == ([task_id] if is_claimable else [])


def workflow_task(db: Database, workflow_status: str, **columns: Any) -> str:
    """A task that backs the only node of a workflow."""
    task_id = db.insert(is_workflow_task=True, **columns)
    db.execute("insert into horsies_workflows (id, name, status) values ('w', 'w', 'RUNNING')")
    db.execute(
        "insert into horsies_workflow_tasks "
        "(id, workflow_id, task_index, task_name, task_id, status) "
        "values ('n', 'w', 0, 'job', %s, 'ENQUEUED')",
        task_id,
    )
    db.execute("update horsies_workflows set status = %s", workflow_status)
    return task_id


@pytest.mark.seed("S13", "S71")
def test_locked_rows_are_skipped_not_waited_for(committing: Database, database_url: str) -> None:
    committing.insert(id="a")
    committing.insert(id="b")

    with psycopg.connect(database_url) as other_connection:
        other = Database(other_connection)
        other.set_now(0)
        first = other.claim(1, owner_id="worker-b")
        second = committing.claim(2)

    assert (names(first), names(second)) == (["a"], ["b"])
    assert committing.statuses() == {"RUNNING": 2}


def test_claims_under_a_cap_wait_for_each_other(committing: Database, database_url: str) -> None:
    for _ in range(4):
        committing.insert(queue_name="q")
    taken: list[HeldTask] = []
    other = connect(database_url)
    other.set_now(0)

    def claim() -> None:
        taken.extend(other.claim(4, owner_id="worker-b", queues={"q": 3}))

    with psycopg.connect(database_url) as first_connection:
        first = Database(first_connection)
        first.set_now(0)
        first.claim(2, queues={"q": 3})
        thread = threading.Thread(target=claim)
        thread.start()
        committing.wait_until_blocked(other.connection.info.backend_pid)
        first_connection.commit()
    thread.join(timeout=10)
    other.connection.close()

    assert len(taken) == 1
    assert committing.statuses() == {"RUNNING": 3, "PENDING": 1}


def test_claims_without_caps_do_not_wait_for_each_other(
    committing: Database, database_url: str
) -> None:
    for _ in range(4):
        committing.insert()

    with psycopg.connect(database_url) as other_connection:
        other = Database(other_connection)
        other.set_now(0)
        other.claim(2, owner_id="worker-b")
        committing.execute("set lock_timeout = '1s'")
        claims = committing.claim(4)

    assert len(claims) == 2


def test_deadline_that_passes_during_the_pass_is_kept(db: Database) -> None:
    task_id = db.insert(good_until=at(5))
    take = """
        select id from horsies_take_tasks('worker-a', 'host-a', 1, '1 minute', '[{"starts": 1}]',
            array[%s], array[1], array[1], %s)
    """

    assert db.execute(take, task_id, at(5)) == []
    assert db.status(task_id) == "PENDING"
    assert db.execute(take, task_id, at(4.9)) == [{"id": task_id}]


def test_sparse_lane_is_searched_through_a_deep_backlog_of_others_bit_by_bit(db: Database) -> None:
    db.execute(
        "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, enqueued_at) "
        "select lpad(i::text, 36, '0'), 'other', 'default', '', %s "
        "from generate_series(1, 5500) i",
        at(-20),
    )
    wanted = db.insert(task_name="a", enqueued_at=at(-10))
    lanes = two_lanes(LaneRequest(0), LaneRequest(5, is_sparse=True))
    fetched = """
        select idx_tup_fetch from pg_stat_xact_user_tables where relname = 'horsies_tasks'
    """
    marks: dict[MarkKey, Mark] = {}
    passes: list[list[str]] = []
    read = [db.value(fetched)]

    for _ in range(3):
        rows = db.claim_pass(lanes=lanes, marks=marks, is_full_scan=False)
        passes.append(names([row for row in rows if isinstance(row, HeldTask)]))
        (position,) = positions(rows)
        marks = {("default", 100, 2): position.mark}
        read.append(db.value(fetched))

    assert passes == [[], [], [wanted]]
    assert not position.may_have_more
    # 2,000 to find the end of a search and 2,000 within it, however deep the backlog.
    assert all(after - before < 4_100 for before, after in pairwise(read))
