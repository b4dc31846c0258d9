"""A small shop in a database, for tests of what operators see; times are relative to NOW."""

import json
from typing import Any, NamedTuple

from support.database import FAILURE, OK, Database, at, retry_options
from support.workflow_model import ModelNode
from support.workflow_rows import Flow, ok

WORKER = "5c0ffee0-0000-4000-8000-000000000001"
LOST_WORKER = "decafbad-0000-4000-8000-000000000002"


class Shop(NamedTuple):
    """A planted database, and ids by what they are."""

    url: str
    db: Database
    ids: dict[str, str]


def task_id(number: int) -> str:
    """Ids that can be told apart by their first letters."""
    return f"{number:04x}0193-e1a0-7000-8000-{number:012x}"


def snapshot(db: Database, worker_id: str = WORKER, **columns: Any) -> str:
    """A worker's picture of itself, one second old."""
    values = {
        "worker_id": worker_id,
        "snapshot_at": at(-1),
        "hostname": "host-a",
        "pid": 4711,
        "processes": 2,
        "queues": ["default"],
        "tasks_running": 1,
        "memory_usage_mb": 61.0,
        "children_memory_mb": 88.0,
        "cpu_percent": 12.0,
        "max_claim_batch": 0,
        "max_claim_per_worker": 0,
        "worker_started_at": at(-7260),
    }
    db.insert("horsies_worker_states", **{**values, **columns})
    return worker_id


def plant_shop(db: Database) -> None:
    """A worker on `default`, nobody on `mail`, and tasks in most states."""
    snapshot(db)
    for number in range(1, 41):
        start = -3000 + 60 * number
        is_ok = number % 10 != 0
        db.insert(
            id=task_id(number),
            task_name="charge_card" if number % 2 == 0 else "send_receipt",
            kwargs=json.dumps({"order": number}),
            status="COMPLETED" if is_ok else "FAILED",
            sent_at=at(start - 1),
            created_at=at(start - 1),
            enqueued_at=at(start - 1),
            claimed_at=at(start),
            claimed_by_worker_id=WORKER,
            started_at=at(start),
            completed_at=at(start + number / 10) if is_ok else None,
            failed_at=None if is_ok else at(start + number / 10),
            error_code=None if is_ok else "CARD_DECLINED",
            result=OK if is_ok else FAILURE.replace("BROKEN", "CARD_DECLINED"),
            worker_hostname="host-a",
            worker_pid=4711,
        )
        db.insert(
            "horsies_task_attempts",
            task_id=task_id(number),
            attempt=1,
            outcome="COMPLETED" if is_ok else "FAILED",
            started_at=at(start),
            finished_at=at(start + number / 10),
            error_code=None if is_ok else "CARD_DECLINED",
            worker_hostname="host-a",
            worker_pid=4711,
        )
    db.insert(
        "horsies_task_logs",
        task_id=task_id(40),
        attempt=1,
        log="WARNING shop: order 40: no funds\n",
    )
    db.execute(
        "update horsies_task_attempts set traceback = %s where task_id = %s",
        'File "shop.py", line 7, in charge_card\nDeclined: no funds\n',
        task_id(40),
    )
    waiting = {"task_name": "send_newsletter", "queue_name": "mail", "created_at": at(-90)}
    for number in range(41, 44):
        db.insert(id=task_id(number), sent_at=at(-90), enqueued_at=at(-90), **waiting)
    db.insert(
        id=task_id(44),
        task_name="charge_card",
        sent_at=at(-50),
        created_at=at(-50),
        enqueued_at=at(25),
        next_retry_at=at(25),
        retry_count=1,
        max_retries=3,
        task_options=retry_options(),
    )
    db.insert(
        id=task_id(45),
        task_name="close_books",
        status="RUNNING",
        sent_at=at(-40),
        created_at=at(-40),
        enqueued_at=at(-40),
        claimed_at=at(-39),
        started_at=at(-39),
        claimed_by_worker_id=WORKER,
        worker_hostname="host-a",
        worker_pid=4712,
    )
    progress = {"done": 12, "total": 40, "note": "March"}
    db.insert(
        "horsies_task_progress", task_id=task_id(45), attempt=1, updated_at=at(-1), **progress
    )


def plant_stable(db: Database) -> dict[str, str]:
    """The shop on a busy day: every state of tasks and workflows, workers with a past.

    Returns ids by what they are: `failed`, `running`, `flow`, ...
    """
    plant_shop(db)
    _plant_snapshots(db)
    ended = {"enqueued_at": at(-300), "sent_at": at(-301), "created_at": at(-301)}
    db.insert(
        id=task_id(46), task_name="send_receipt", status="CANCELLED", failed_at=at(-200), **ended
    )
    db.insert(
        id=task_id(47), task_name="send_receipt", status="EXPIRED", failed_at=at(-100), **ended
    )
    db.insert(
        id=task_id(48),
        task_name="resize_photo",
        status="CLAIMED",
        claimed=True,
        claimed_at=at(-90),
        claim_expires_at=at(-30),
        claimed_by_worker_id=LOST_WORKER,
        **ended,
    )
    flow = Flow.start(
        db,
        ModelNode(),
        ModelNode((0,)),
        ModelNode((0,)),
        ModelNode((1, 2)),
        name="nightly_report",
        rows={
            index: {"node_id": name, "task_name": name}
            for index, name in enumerate(("load", "count", "render", "mail"))
        },
    )
    flow.end({0: ok([1, 2, 3])})
    db.execute("update horsies_workflows set started_at = %s where id = %s", at(-130), flow.id)
    others = ("PENDING", "COMPLETED", "FAILED", "PAUSED", "CANCELLED")
    for status in others:
        Flow.by_hand(db, {}, {"dependencies": [0]}, name=f"import_{status.lower()}", status=status)
    return {
        "failed": task_id(40),
        "waiting": task_id(41),
        "running": task_id(45),
        "flow": flow.id,
    }


def _plant_snapshots(db: Database) -> None:
    """An hour of two workers, one of which fell silent."""
    db.execute(
        "insert into horsies_worker_states (worker_id, snapshot_at, hostname, pid, processes, "
        "queues, tasks_running, tasks_claimed, memory_usage_mb, children_memory_mb, cpu_percent, "
        "max_claim_batch, max_claim_per_worker, worker_started_at) "
        "select w.id, %s - n * interval '30 s', w.host, w.pid, 4, w.queues, "
        "round(2 + 2 * sin(n / 9.0)), 1, 60 + n / 10.0, 90 + 20 * sin(n / 20.0), "
        "45 + 40 * sin(n / 9.0), 0, 0, %s "
        "from (values (%s, 'host-a', 4711, '{default}'::text[]), "
        "(%s, 'host-b', 815, '{default,photos}'::text[])) w(id, host, pid, queues), "
        "generate_series(case w.pid when 815 then 4 else 0 end, 119) n",
        at(-2),
        at(-7260),
        WORKER,
        LOST_WORKER,
    )
