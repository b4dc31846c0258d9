"""Every rule that can hold a task back has its sentence, and nothing else is blamed."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult
from support.apps import bad, good
from support.database import FAILURE, OK, Database, at, connect, retry_options
from support.scenes import WORKER, snapshot


@pytest.fixture
def db(server_url: str, database_url: str) -> Iterator[Database]:
    """A database at noon, in every session."""
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"alter database \"{name}\" set horsies.now = '{at(0).isoformat()}'")
    db = connect(database_url)
    yield db
    db.connection.close()


@pytest.fixture
def app(db: Database, database_url: str) -> Iterator[Horsies]:
    app = Horsies(AppConfig(broker=PostgresConfig(database_url=database_url)))
    yield app
    app.get_broker().close()


def clock(seconds: float) -> str:
    return f"{at(seconds).astimezone():%H:%M:%S}"


def rules(app: Horsies, asked: str) -> dict[str, str]:
    """The rules that apply, with their sentences."""
    return {reason.rule: reason.text for reason in good(app.operations.why(asked)).reasons}


def waiting(db: Database, **columns: Any) -> str:
    return db.insert(**{"enqueued_at": at(-5), **columns})


def serve(db: Database, *, names: list[str] | None = None, **columns: Any) -> None:
    snapshot(db, task_names=names or ["job"], **columns)


def test_nothing_holds_it_back(app: Horsies, db: Database) -> None:
    serve(db)

    assert rules(app, waiting(db)) == {
        "none": "Nothing holds it back: a worker should take it within seconds."
    }


def test_its_queue_is_paused(app: Horsies, db: Database) -> None:
    serve(db)
    db.execute("select horsies_pause_queue('default', 'ann', 'the provider is down')")

    assert rules(app, waiting(db)) == {
        "queue_paused": f"Queue default was paused by ann at {clock(0)}: the provider is down."
    }


@pytest.mark.parametrize("is_set_at_run_time", [True, False])
def test_the_cap_of_its_queue_is_in_use(
    app: Horsies, db: Database, is_set_at_run_time: bool
) -> None:
    serve(db, queue_max_concurrency=None if is_set_at_run_time else '{"default": 2}')
    if is_set_at_run_time:
        db.execute("select horsies_limit_queue('default', 2, 'ann', null)")
    for name in ("resize", "resize"):
        db.insert(task_name=name, status="RUNNING", claimed_at=at(-9))
    db.insert(task_name="other", queue_name="web", status="RUNNING", claimed_at=at(-9))

    assert rules(app, waiting(db)) == {
        "queue_cap": "The cap of queue default is in use, 2/2, by resize × 2."
    }


def test_the_cap_of_the_cluster_is_in_use(app: Horsies, db: Database) -> None:
    serve(db, cluster_wide_cap=1)
    db.insert(task_name="other", queue_name="web", status="CLAIMED", claimed_at=at(-9))

    assert rules(app, waiting(db)) == {
        "cluster_cap": "The cap of the whole cluster is in use, 1/1, by other."
    }


def test_it_is_scheduled(app: Horsies, db: Database) -> None:
    serve(db)

    assert rules(app, waiting(db, enqueued_at=at(7200))) == {
        "scheduled": f"It is scheduled for {clock(7200)}, in 2 h."
    }


def test_it_waits_for_a_retry(app: Horsies, db: Database) -> None:
    serve(db)
    task_id = waiting(
        db, enqueued_at=at(90), next_retry_at=at(90), retry_count=3, max_retries=5,
        task_options=retry_options(5),
    )  # fmt: skip

    assert rules(app, task_id) == {
        "retry": f"It waits for retry 3 of 5, due at {clock(90)}, in 1 min 30 s."
    }


def test_it_is_never_due(app: Horsies, db: Database) -> None:
    serve(db)
    task_id = waiting(db)
    db.execute("update horsies_tasks set enqueued_at = 'infinity'")

    assert rules(app, task_id) == {
        "never_due": "It is due at no time: its enqueued_at is infinite."
    }


def test_others_come_first(app: Horsies, db: Database) -> None:
    serve(db)
    db.execute(
        "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, priority, enqueued_at)"
        " select 'x' || n, 'job', 'default', '', case when n <= 1203 then 1 else 100 end, %s"
        " from generate_series(1, 1204) n",
        at(-10),
    )
    waiting(db, priority=1, enqueued_at=at(60))

    assert rules(app, waiting(db)) == {
        "priority": "It is behind 1,203 tasks of better priority in its queue.",
        "backlog": "It is behind 1 task of its priority, due before it.",
    }


def test_its_workers_serve_other_queues_first(app: Horsies, db: Database) -> None:
    snapshot(db, queues=["high", "mid", "default", "low"], task_names=["job"])
    task_id = waiting(db)
    for queue in ("high", "high", "mid", "low"):
        waiting(db, queue_name=queue)
    waiting(db, queue_name="mid", enqueued_at=at(60))
    assert rules(app, task_id) == {
        "better_queues": "Its workers first take what is due in queues high (2) and mid (1)."
    }

    db.execute("select horsies_pause_queue('high', 'ann', null)")
    assert rules(app, task_id) == {
        "better_queues": "Its workers first take what is due in queue mid (1)."
    }

    db.execute("select horsies_limit_queue('mid', 1, 'ann', null)")
    db.insert(queue_name="mid", status="RUNNING", claimed_at=at(-9))
    assert set(rules(app, task_id)) == {"none"}


def test_a_worker_that_serves_its_queue_first_is_enough(app: Horsies, db: Database) -> None:
    snapshot(db, queues=["high", "default"], task_names=["job"])
    snapshot(db, "another", pid=4712, queues=["default", "high"], task_names=["job"])
    waiting(db, queue_name="high")

    assert set(rules(app, waiting(db))) == {"none"}


def test_no_live_worker_serves_its_queue(app: Horsies, db: Database) -> None:
    serve(db)
    snapshot(db, "old", queues=["emails"], snapshot_at=at(-31))
    snapshot(db, "gone", queues=["emails"], holds_lock=True)

    assert rules(app, waiting(db, queue_name="emails")) == {
        "no_worker": "No live worker serves queue emails. Live workers serve default."
    }


def test_no_worker_is_alive(app: Horsies, db: Database) -> None:
    assert rules(app, waiting(db)) == {
        "no_worker": "No live worker serves queue default. No worker is alive at all."
    }


def test_no_live_worker_knows_the_task(app: Horsies, db: Database) -> None:
    serve(db, names=["other"])

    assert rules(app, waiting(db)) == {
        "unknown_task": "No live worker of queue default knows a task job: the one that takes it "
        "fails it."
    }


def test_a_worker_that_told_no_names_is_not_blamed(app: Horsies, db: Database) -> None:
    serve(db, names=["other"])
    snapshot(db, "of the release before", pid=4712)

    assert set(rules(app, waiting(db))) == {"none"}


FULL = '{"process": {"slots": 4, "busy": 4}, "async": {"slots": 100, "busy": 1}}'
ROOM = '{"process": {"slots": 4, "busy": 3}}'


def test_all_slots_of_its_workers_are_in_use(app: Horsies, db: Database) -> None:
    serve(db, slots=FULL)
    task_id = waiting(db)
    text = "All 4 slots for child processes of the workers of its queue are in use, as of their "
    unknown = {"slots": f"{text}last sign of life. It waits if it needs one of them."}
    assert rules(app, task_id) == unknown

    app.task("job")(job)
    assert rules(app, task_id) == {"slots": f"{text}last sign of life."}

    snapshot(db, "another", pid=4712, slots=ROOM)
    assert set(rules(app, task_id)) == {"none"}


def job() -> TaskResult[None, TaskError]: ...  # type: ignore[empty-body]


def test_its_workers_drain(app: Horsies, db: Database) -> None:
    serve(db)
    db.execute("insert into horsies_worker_drains (worker_id) values (%s)", WORKER)

    assert rules(app, waiting(db)) == {
        "draining": "Every live worker of queue default drains: it finishes what it runs and takes "
        "nothing new."
    }


def test_its_deadline_has_passed(app: Horsies, db: Database) -> None:
    serve(db)

    assert rules(app, waiting(db, good_until=at(-60))) == {
        "deadline": "Its deadline passed 1 min ago: it will not start, and the next pass of a "
        "worker's reaper marks it EXPIRED."
    }


def workflow(db: Database, status: str) -> None:
    db.insert("horsies_workflows", id="w", name="import", status=status)


def node(db: Database, index: int, status: str, **columns: Any) -> None:
    db.insert(
        "horsies_workflow_tasks", id=f"w{index}", workflow_id="w", task_index=index,
        node_id="ABC"[index], task_name="job", status=status, **columns,
    )  # fmt: skip


def test_its_workflow_is_paused(app: Horsies, db: Database) -> None:
    serve(db)
    workflow(db, "PAUSED")
    task_id = waiting(db, is_workflow_task=True, is_held=True)
    node(db, 0, "ENQUEUED", task_id=task_id)

    assert rules(app, task_id) == {"workflow_paused": "Its workflow import is paused."}
    assert rules(app, "w/A") == {"workflow_paused": "Its workflow import is paused."}


def test_a_node_waits_for_others(app: Horsies, db: Database) -> None:
    workflow(db, "RUNNING")
    node(db, 0, "COMPLETED")
    node(db, 1, "RUNNING")
    node(db, 2, "PENDING", dependencies=[0, 1])

    assert rules(app, "w/C") == {"waits_for_node": "It waits for node B (RUNNING)."}


@pytest.mark.parametrize(
    ("join", "text"), [("any", "the first of "), ("quorum", "enough of ")], ids=["any", "quorum"]
)
def test_a_node_waits_for_some_of_others(app: Horsies, db: Database, join: str, text: str) -> None:
    workflow(db, "RUNNING")
    node(db, 0, "PENDING")
    node(db, 1, "RUNNING")
    node(db, 2, "PENDING", dependencies=[0, 1], join_type=join)

    assert rules(app, "w/C") == {
        "waits_for_node": f"It waits for {text}nodes A (PENDING) and B (RUNNING)."
    }


def test_a_node_waits_for_its_sub_workflow(app: Horsies, db: Database) -> None:
    workflow(db, "RUNNING")
    db.insert("horsies_workflows", id="s", name="resize", status="PAUSED", parent_workflow_id="w")
    node(db, 0, "RUNNING", kind="sub_workflow", sub_workflow_id="s")
    node(db, 1, "READY", kind="sub_workflow")

    assert rules(app, "w/A") == {"sub_workflow": "It waits for its workflow resize, s (PAUSED)."}
    assert rules(app, "w/B") == {
        "ready": "It is ready: a live worker starts its workflow within seconds."
    }


def test_an_element_waits_until_fewer_are_in_flight(app: Horsies, db: Database) -> None:
    workflow(db, "RUNNING")
    db.execute("update horsies_workflows set max_in_flight = 2")
    for index, status in enumerate(["RUNNING", "ENQUEUED", "READY"]):
        node(db, index, status)

    assert rules(app, "w/C") == {
        "max_in_flight": "At most 2 elements of its list are in flight at once."
    }


@pytest.mark.parametrize("status", ["CANCELLED", "FAILED"])
def test_a_node_of_an_ended_workflow_does_not_begin(
    app: Horsies, db: Database, status: str
) -> None:
    workflow(db, status)
    node(db, 0, "PENDING")

    assert rules(app, "w/A") == {
        "workflow_ended": f"Its workflow import has ended: {status}. It will not begin."
    }


def test_nothing_holds_a_node_back(app: Horsies, db: Database) -> None:
    workflow(db, "RUNNING")
    node(db, 0, "COMPLETED")
    node(db, 1, "PENDING", dependencies=[0])

    assert rules(app, "w/B") == {
        "none": "Nothing holds it back: a worker should start it within seconds."
    }


def test_a_node_without_a_task_has_ended(app: Horsies, db: Database) -> None:
    workflow(db, "FAILED")
    node(db, 0, "SKIPPED")

    assert rules(app, "w/A") == {"node_ended": "It has ended: SKIPPED."}


def test_a_node_waits_for_an_event_or_its_time(app: Horsies, db: Database) -> None:
    workflow(db, "RUNNING")
    node(db, 0, "RUNNING", kind="event", event_name="paid", event_key="7", wait_until=at(60))
    node(db, 1, "RUNNING", kind="sleep", wait_until=at(60))

    assert rules(app, "w/A") == {"waits_for_event": "It waits for the event paid with key 7."}
    assert rules(app, "w/B") == {"sleeps": f"It sleeps until {clock(60)}."}


def claimed(db: Database, **columns: Any) -> str:
    return db.insert(
        status="CLAIMED", claimed=True, claimed_at=at(-5), claimed_by_worker_id=WORKER,
        claim_expires_at=at(55), **columns,
    )  # fmt: skip


def test_a_living_worker_has_it(app: Horsies, db: Database) -> None:
    serve(db)

    assert rules(app, claimed(db)) == {
        "claimed": "It waits in the buffer of the worker on host-a pid 4711, with a lease until "
        f"{clock(55)}: it starts soon."
    }


def test_a_dead_worker_holds_its_lease(app: Horsies, db: Database) -> None:
    snapshot(db, holds_lock=True)

    assert rules(app, claimed(db)) == {
        "dead_lease": "Its lease is held by the worker on host-a pid 4711, which is gone, with a "
        f"lease until {clock(55)}. Then another worker takes it, or sooner if its death is proven."
    }


def running(db: Database, **columns: Any) -> str:
    return db.insert(
        status="RUNNING", claimed_at=at(-75), started_at=at(-75), claimed_by_worker_id=WORKER,
        worker_hostname="host-a", worker_pid=4712, **columns,
    )  # fmt: skip


def test_it_runs(app: Horsies, db: Database) -> None:
    serve(db)

    assert rules(app, running(db, cancel_requested_at=at(-5))) == {
        "running": "It has been running for 1 min 15 s on host-a pid 4712.",
        "cancel_requested": f"Its end was asked for at {clock(-5)}.",
    }


def test_its_worker_died_while_it_ran(app: Horsies, db: Database) -> None:
    snapshot(db, snapshot_at=at(-60))

    found = rules(app, running(db))

    assert set(found) == {"dead_worker"}
    assert "It was running on host-a pid 4712, but its worker is silent." in found["dead_worker"]


ENDS: list[tuple[str, dict[str, Any], str]] = [
    ("COMPLETED", {"completed_at": at(-1), "result": OK}, "It completed at {} after 2.0 s."),
    (
        "FAILED",
        {"failed_at": at(-1), "error_code": "BROKEN", "result": FAILURE, "retry_count": 2},
        "It failed at {} with BROKEN, after 2 retries.",
    ),
    ("CANCELLED", {"updated_at": at(-1)}, "It was cancelled at {}."),
    ("EXPIRED", {"failed_at": at(-1)}, "It expired at {}: it had not started by its deadline."),
]


@pytest.mark.parametrize(("status", "columns", "text"), ENDS, ids=[end[0] for end in ENDS])
def test_it_has_ended(
    app: Horsies, db: Database, status: str, columns: dict[str, Any], text: str
) -> None:
    task_id = db.insert(status=status, started_at=at(-3), **columns)

    assert rules(app, task_id) == {status.lower(): text.format(clock(-1))}


def test_all_rules_that_apply_are_told(app: Horsies, db: Database) -> None:
    db.execute("select horsies_pause_queue('default', 'ann', null)")
    task_id = waiting(db, enqueued_at=at(60), good_until=at(-1))

    explanation = good(app.operations.why(task_id[:20]))

    assert [reason.rule for reason in explanation.reasons] == [
        "deadline", "scheduled", "queue_paused", "no_worker",
    ]  # fmt: skip
    assert all(reason.cure for reason in explanation.reasons)


async def test_what_is_not_there_is_said(app: Horsies) -> None:
    assert bad(await app.operations.why_async("0193")).message == "there is no task 0193"
    assert "there is no node B in a workflow w" in bad(app.operations.why("w/B")).message


def test_days_are_named_when_it_is_not_today(app: Horsies, db: Database) -> None:
    serve(db)
    later = at(0) + timedelta(days=3)

    (text,) = rules(app, waiting(db, enqueued_at=later)).values()

    assert text == f"It is scheduled for {later.astimezone():%F %T}, in 3 d."
