"""Which change wakes whom: by trigger, and right after the commit of our own writes."""

from collections import Counter

import psycopg
import pytest

from horsies.operations.statements import cancel_tasks, requeue_tasks
from horsies.sending.statements import enqueue_tasks, send_task, send_tasks
from horsies.worker.held_task import Completion
from horsies.worker.statements import end_tasks
from support.database import FAILURE, OK, Database, new_task

CHANNELS = (
    "task_new", "task_queue_default", "task_queue_q", "task_done", "horsies_task_status",
    "horsies_worker_state", "horsies_tasks_returned",
)  # fmt: skip


@pytest.fixture
def listening(committing: Database) -> Database:
    for channel in CHANNELS:
        committing.execute(f"listen {channel}")
    return committing


def heard(db: Database) -> Counter[tuple[str, str]]:
    """What has arrived so far. A marker shows that nothing is still on its way."""
    db.execute("listen finished")
    db.execute("notify finished")
    found: Counter[tuple[str, str]] = Counter()
    for notification in db.connection.notifies(timeout=10):
        if notification.channel == "finished":
            break
        found[notification.channel, notification.payload] += 1
    return found


@pytest.mark.seed("S129", "S131")
def test_new_task_wakes_all_and_its_queue_with_its_id(listening: Database) -> None:
    listening.run(enqueue_tasks([new_task("a"), new_task("b", queue_name="q")]))

    assert heard(listening) == Counter(
        [
            ("task_new", "a"), ("task_queue_default", "a"), ("horsies_task_status", "a"),
            ("task_new", "b"), ("task_queue_q", "b"), ("horsies_task_status", "b"),
        ]
    )  # fmt: skip


def test_many_new_tasks_wake_each_queue_once(listening: Database) -> None:
    rows = [new_task(f"a{n:02}") for n in range(8)]
    rows += [new_task(f"b{n:02}", queue_name="q") for n in range(8)]

    listening.run(enqueue_tasks(rows))

    assert heard(listening) == Counter(
        [
            ("task_new", "a00"), ("task_queue_default", "a00"),
            ("task_new", "b00"), ("task_queue_q", "b00"), ("horsies_task_status", "*"),
        ]
    )  # fmt: skip


def test_ten_new_tasks_are_told_one_by_one(listening: Database) -> None:
    ids = [f"a{n:02}" for n in range(10)]

    listening.run(enqueue_tasks([new_task(task_id) for task_id in ids]))

    channels = ("task_new", "task_queue_default", "horsies_task_status")
    assert heard(listening) == Counter((channel, one) for channel in channels for one in ids)


def test_many_rows_inserted_in_another_state_wake_no_worker(listening: Database) -> None:
    listening.execute(
        "insert into horsies_tasks (id, task_name, queue_name, status, enqueue_sha) "
        "select n, 't', 'q', 'COMPLETED', '' from generate_series(1, 11) n"
    )

    assert heard(listening) == Counter([("horsies_task_status", "*")])


def test_row_inserted_in_another_state_wakes_no_worker(listening: Database) -> None:
    listening.insert(id="a", status="COMPLETED")

    assert heard(listening) == Counter([("horsies_task_status", "a")])


@pytest.mark.seed("S130", "S131")
@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "CANCELLED", "EXPIRED"])
def test_change_to_an_end_tells_the_waiters_once(listening: Database, status: str) -> None:
    listening.insert(id="a", status="RUNNING")
    heard(listening)

    listening.execute("update horsies_tasks set status = %s", status)
    listening.execute("update horsies_tasks set updated_at = now()")

    assert heard(listening) == Counter([("task_done", "a"), ("horsies_task_status", "a")])


@pytest.mark.parametrize(
    ("width", "count"),
    [
        pytest.param(1, 11, id="few"),
        pytest.param(36, 1_000, id="many"),
        pytest.param(36 * 4, 300, id="wide"),
    ],
)
def test_ends_of_many_share_payloads_that_name_them_all(
    listening: Database, width: int, count: int
) -> None:
    sign = "\N{GRINNING FACE}" if width > 36 else "x"
    ids = {f"{n:04}{sign * (32 if width > 1 else 1)}" for n in range(count)}
    listening.execute(
        "insert into horsies_tasks (id, task_name, queue_name, status, enqueue_sha) "
        "select n, 't', 'q', 'RUNNING', '' from unnest(%s::text[]) n", list(ids),
    )  # fmt: skip
    heard(listening)

    listening.execute("update horsies_tasks set status = 'COMPLETED'")

    found = heard(listening)
    payloads = [payload for channel, payload in found if channel == "task_done"]
    assert found["horsies_task_status", "*"] == 1
    assert found.total() == 1 + len(payloads)
    assert sorted(one for payload in payloads for one in payload.split(",")) == sorted(ids)
    assert len(payloads) <= 1 + sum(len(one.encode()) + 1 for one in ids) // 7_500


def test_many_rows_that_keep_their_state_tell_nobody(listening: Database) -> None:
    listening.run(enqueue_tasks([new_task(f"a{n:02}") for n in range(20)]))
    heard(listening)

    listening.execute("update horsies_tasks set updated_at = now()")

    assert heard(listening) == Counter()


def test_each_change_of_state_is_told_to_monitors(listening: Database) -> None:
    """A claim is told by its worker, when the task has not ended at once."""
    listening.insert(id="a")
    heard(listening)

    (claim,) = listening.claim(0, waiting=1)
    claimed = heard(listening)
    listening.start(claim)

    assert claimed == Counter()
    assert heard(listening) == Counter({("horsies_task_status", "a"): 1})


def test_sends_of_our_own_are_told_like_those_of_others(listening: Database) -> None:
    listening.run(send_task(new_task("a")))
    one = heard(listening)
    listening.run(send_tasks([new_task("a"), new_task("b", queue_name="q")]))
    two = heard(listening)

    told = ["horsies_task_status", "task_new", "task_queue_default"]
    assert one == Counter({(channel, "a"): 1 for channel in told})
    assert two == Counter(
        {(channel, "b"): 1 for channel in ("horsies_task_status", "task_new", "task_queue_q")}
    ), "what exists is not told again"


def test_many_sends_of_our_own_share_their_messages(listening: Database) -> None:
    listening.run(send_tasks([new_task(f"t{n:02}", queue_name="q") for n in range(11)]))

    assert heard(listening) == Counter(
        [("horsies_task_status", "*"), ("task_new", "t00"), ("task_queue_q", "t00")]
    )


def test_send_that_is_refused_is_not_told(listening: Database) -> None:
    listening.run(send_task(new_task("a")))
    heard(listening)

    with pytest.raises(psycopg.errors.UniqueViolation):
        listening.run(send_task(new_task("a")))

    assert heard(listening) == Counter()


def test_ends_of_our_own_are_told_after_their_commit(listening: Database) -> None:
    for name in ("done", "failed", "lost", "retried"):
        listening.insert(id=name, max_retries=3)
    done, failed, lost, retried = listening.claim(4)
    lost.attempt = 7
    broken = {"ending": "fail", "attempt_outcome": "FAILED", "error_code": "BROKEN"}
    failures = [
        Completion(failed, FAILURE, **broken),
        Completion(retried, FAILURE, retry_delay_s=5.0, **broken),
    ]
    heard(listening)

    statement = end_tasks("worker-a", [Completion(c, OK) for c in (done, lost)], failures, None)
    (ended,) = listening.run(statement)

    told = heard(listening)
    assert {task_id for channel, task_id in told if channel == "task_done"} >= {"done", "failed"}
    assert ("task_done", "retried") not in told
    assert told["horsies_task_status", "retried"] == 1
    assert {receipt.task_id: receipt.outcome for receipt in ended.receipts()} == {
        "lost": "claim_lost",
        "failed": "failed",
        "retried": "retried",
    }
    assert listening.statuses() == {"COMPLETED": 1, "FAILED": 1, "RUNNING": 1, "PENDING": 1}


def test_claim_given_back_wakes_its_queue(listening: Database) -> None:
    claim = listening.claimed(id="a", queue_name="q")
    heard(listening)

    listening.give_back(claim)

    assert heard(listening)["task_queue_q", "a"] == 1


def test_requeue_repeats_the_channels_of_an_insert(listening: Database) -> None:
    listening.insert(id="a")
    listening.run(cancel_tasks(["a"]))
    heard(listening)

    listening.run(requeue_tasks(["a"], include_completed=False))

    found = heard(listening)
    assert (found["task_new", "a"], found["task_queue_default", "a"]) == (1, 1)


def test_queue_name_too_long_for_a_channel_is_served_by_the_general_one(
    listening: Database,
) -> None:
    listening.insert(id="a", queue_name="q" * 100)

    assert heard(listening)["task_new", "a"] == 1


def test_worker_snapshot_is_told(listening: Database) -> None:
    listening.execute(
        "insert into horsies_worker_states (worker_id, hostname, pid, processes, queues, "
        "max_claim_batch, max_claim_per_worker, worker_started_at) "
        "values ('w', 'h', 1, 1, '{default}', 0, 0, now())"
    )

    assert heard(listening) == Counter([("horsies_worker_state", "w")])


def test_notification_waits_for_the_commit(listening: Database, database_url: str) -> None:
    with psycopg.connect(database_url) as sender:
        Database(sender).insert(id="a")
        before = heard(listening)
    after = heard(listening)

    assert before == Counter()
    assert after["task_new", "a"] == 1


def test_returned_tasks_wake_those_who_have_gone_past_them(listening: Database) -> None:
    claims = [listening.claimed(), listening.claimed()]
    heard(listening)

    listening.give_back(*claims)

    assert heard(listening)["horsies_tasks_returned", "default"] == 1
