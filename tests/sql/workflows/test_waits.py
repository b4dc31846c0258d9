"""Sleeping and events: nodes that wait without a task."""

import json
from typing import Any

import pytest

from horsies.workflows import statements
from support.database import Database, at, connect
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow, code_of, recover

C, F, R, E = "COMPLETED", "FAILED", "RUNNING", "ENQUEUED"


def sleep(seconds: float) -> dict[str, Any]:
    return {"kind": "sleep", "settings": {"seconds": seconds}}


def event(key: str = "k", seconds: float | None = None) -> dict[str, Any]:
    return {"kind": "event", "settings": {"event": "paid", "key": key, "seconds": seconds}}


def send(db: Database, payload: Any, key: str = "k") -> None:
    db.run(statements.store_event("paid", key, json.dumps(payload)))


def wake(db: Database, limit: int = 100) -> int:
    return db.run(statements.wake_nodes(limit))[0].woken


def test_sleep_ends_at_its_time_and_not_before(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)), rows={0: sleep(10)})

    db.set_now(9)
    early = (wake(db), flow.states)
    db.set_now(10)
    woken = wake(db)

    assert early == (0, [R, "PENDING"])
    assert (woken, flow.states) == (1, [C, E])
    assert json.loads(flow.nodes[0]["result"])["ok"] is None


def test_sleep_until_an_instant_that_has_passed_ends_at_once(db: Database) -> None:
    node = {"kind": "sleep", "settings": {"until": at(-5).isoformat()}}

    flow = Flow.start(db, N(), rows={0: node})

    assert (flow.states, flow.status) == ([C], C)


def test_waker_is_told_when_to_look_again(db: Database) -> None:
    Flow.start(db, N(), N(), rows={0: sleep(30), 1: sleep(10)})
    paused = Flow.start(db, N(), rows={0: sleep(3)})
    paused.pause()

    (found,) = db.run(statements.wake_nodes(100))

    assert float(found.next_after_s) == pytest.approx(10)  # type: ignore[arg-type]


def test_event_before_the_wait_is_kept(db: Database) -> None:
    send(db, {"amount": 5})

    flow = Flow.start(db, N(), rows={0: event()})

    assert flow.status == C
    assert json.loads(flow.nodes[0]["result"])["ok"] == {"amount": 5}


def test_event_wakes_every_node_that_waits_for_its_key(db: Database) -> None:
    flows = [Flow.start(db, N(), N(), rows={0: event(), 1: event("other")}) for _ in range(3)]

    send(db, 1)
    woken = wake(db)

    assert woken == 3
    assert [flow.states for flow in flows] == [[C, R]] * 3


def test_last_payload_of_a_key_counts_for_later_waits(db: Database) -> None:
    first = Flow.start(db, N(), rows={0: event()})
    send(db, 1)
    wake(db)
    send(db, 2)
    second = Flow.start(db, N(), rows={0: event()})

    values = [json.loads(flow.nodes[0]["result"])["ok"] for flow in (first, second)]

    assert values == [1, 2]


def test_overdue_event_fails_its_node(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)), rows={0: event(seconds=10)})

    db.set_now(10)
    wake(db)

    assert flow.states == [F, "SKIPPED"]
    assert code_of(flow.row["error"]) == "TASK_EXPIRED"


def test_event_in_time_wins_over_a_deadline_noticed_late(db: Database) -> None:
    flow = Flow.start(db, N(), rows={0: event(seconds=10)})
    send(db, 1)

    db.set_now(20)
    wake(db)

    assert flow.states == [C]


@pytest.mark.parametrize("kind", ["sleep", "event"])
def test_wait_of_a_paused_workflow_ends_when_it_is_resumed(db: Database, kind: str) -> None:
    flow = Flow.start(db, N(), rows={0: sleep(10) if kind == "sleep" else event()})
    flow.pause()
    send(db, 1)
    db.set_now(100)

    woken = wake(db)
    states = flow.states
    flow.resume()

    assert (woken, states) == (0, [R])
    assert flow.states == [C]


def test_waits_of_paused_workflows_hold_up_no_others(db: Database) -> None:
    paused = [Flow.start(db, N(), rows={0: event()}) for _ in range(5)]
    for flow in paused:
        flow.pause()
    running = [Flow.start(db, N(), rows={0: event()}) for _ in range(3)]
    send(db, 1)

    woken = wake(db, limit=2) + wake(db, limit=2)

    assert woken == 3
    assert [flow.states for flow in running] == [[C]] * 3


def test_event_with_more_waiters_than_a_batch_reaches_all(db: Database) -> None:
    flows = [Flow.start(db, N(), rows={0: event()}) for _ in range(5)]
    send(db, 1)
    db.execute("update horsies_events set sent_at = %s", at(-60))

    woken = [wake(db, limit=2) for _ in range(3)]

    assert woken == [2, 2, 1]
    assert {flow.status for flow in flows} == {C}


def test_missed_wait_is_made_up_by_recovery(db: Database) -> None:
    sleeping = Flow.start(db, N(), rows={0: sleep(10)})
    waiting = Flow.start(db, N(), rows={0: event()})
    send(db, 1)
    db.execute("update horsies_events set is_new = false")
    db.set_now(11)

    assert recover(db) == 2

    assert (sleeping.status, waiting.status) == (C, C)
    assert recover(db) == 0


def test_event_being_sent_again_holds_up_no_wait(committing: Database, database_url: str) -> None:
    flow = Flow.start(committing, N(), rows={0: sleep(10)})
    send(committing, 1)
    committing.execute("update horsies_events set sent_at = %s", at(-60))
    user = connect(database_url)
    user.connection.autocommit = False
    send(user, 2)
    committing.set_now(11)
    committing.execute("set lock_timeout = '2s'")

    woken = wake(committing)

    user.connection.rollback()
    user.connection.close()
    assert (woken, flow.status) == (1, C)
