"""Rows for tests: insert them, move them through the stored functions, look at them."""

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import Connection, sql
from psycopg.rows import dict_row

from horsies.database.statement import Receipt, Statement, run_blocking
from horsies.sending.rows import NewTask
from horsies.worker import statements
from horsies.worker.claim_request import (
    ClaimLimits,
    ClaimRequest,
    ClaimRow,
    LaneRequest,
    Mark,
    MarkKey,
    PermitRequest,
)
from horsies.worker.held_task import Completion, HeldTask
from horsies.worker.identity import WorkerIdentity
from horsies.worker.settings import ServedQueue
from horsies.worker.statements import FailReceipt
from support.eventually import eventually

Row = TypeVar("Row")

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
OK = '{"__task_result__":true,"ok":1,"err":null}'
FAILURE = '{"__task_result__":true,"ok":null,"err":{"__task_error__":true,"error_code":"BROKEN"}}'


def at(seconds: float) -> datetime:
    """An instant relative to the tests' "now"."""
    return NOW + timedelta(seconds=seconds)


def new_task(task_id: str | None = None, **fields: Any) -> NewTask:
    """A task to enqueue; fields not named are the plainest possible."""
    values: dict[str, Any] = {
        "id": task_id or str(uuid.uuid4()),
        "task_name": "job",
        "queue_name": "default",
        "priority": 100,
        "args": None,
        "kwargs": None,
        "sent_at": at(-1),
        "enqueued_at": None,
        "delay_s": None,
        "good_until": None,
        "max_retries": 0,
        "task_options": None,
        "enqueue_sha": "0" * 64,
    }
    return NewTask(**{**values, **fields})


def retry_options(max_retries: int = 3, codes: Sequence[str] = ("BROKEN",)) -> str:
    """The stored options of a task with a retry policy."""
    policy = {
        "max_retries": max_retries,
        "intervals": [10] * max_retries,
        "backoff_strategy": "fixed",
        "jitter": False,
        "auto_retry_for": list(codes),
    }
    return json.dumps({"retry_policy": policy, "good_until": None})


class Database:
    """One connection to a migrated database, with a clock that only the test moves."""

    def __init__(self, connection: Connection[Any]) -> None:
        connection.row_factory = dict_row
        self.connection = connection

    def set_now(self, seconds: float) -> None:
        """Set the functions' clock for this session."""
        instant = at(seconds).isoformat()
        self.connection.execute("select set_config('horsies.now', %s, false)", [instant])

    def execute(self, statement: str, *parameters: Any) -> list[dict[str, Any]]:
        cursor = self.connection.execute(statement.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def value(self, statement: str, *parameters: Any) -> Any:
        """The only column of the only row."""
        (row,) = self.execute(statement, *parameters)
        (value,) = row.values()
        return value

    def run(self, statement: Statement[Row]) -> list[Row]:
        return run_blocking(self.connection, statement)

    def insert(self, table: str = "horsies_tasks", /, **columns: Any) -> str:
        """A row by hand; for a task, what a hand-written INSERT must give is filled in."""
        if table == "horsies_tasks":
            defaults = {
                "id": str(uuid.uuid4()),
                "task_name": "job",
                "queue_name": "default",
                "enqueue_sha": "by hand",
                "enqueued_at": at(-10),
            }
            columns = {**defaults, **columns}
        statement = sql.SQL("insert into {} ({}) values ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join([sql.Placeholder()] * len(columns)),
        )
        self.connection.execute(statement, list(columns.values()))
        return str(columns.get("id"))

    def task(self, task_id: str) -> dict[str, Any]:
        (row,) = self.execute("select * from horsies_tasks where id = %s", task_id)
        return row

    def status(self, task_id: str) -> str:
        return str(self.task(task_id)["status"])

    def statuses(self) -> dict[str, int]:
        rows = self.execute("select status, count(*) as n from horsies_tasks group by status")
        return {row["status"]: row["n"] for row in rows}

    def error_of(self, task_id: str) -> dict[str, Any]:
        """The error inside the stored result."""
        error: dict[str, Any] = json.loads(self.task(task_id)["result"])["err"]
        return error

    def attempts(self, task_id: str) -> list[dict[str, Any]]:
        return self.execute(
            "select * from horsies_task_attempts where task_id = %s order by attempt", task_id
        )

    def claim(self, count: int = 1, *, waiting: int = 0, **fields: Any) -> list[HeldTask]:
        """One claim pass: `count` tasks may start, `waiting` more may wait in the buffer."""
        lane = LaneRequest(count, waiting, child_pids=list(range(2001, 2001 + count)))
        rows = self.claim_pass(**{"lanes": [lane], **fields})
        return statements.in_claim_order(rows)

    def claim_pass(
        self,
        *,
        lanes: Sequence[LaneRequest],
        owner_id: str = "worker-a",
        queues: Mapping[str, int | None] | None = None,
        marks: Mapping[MarkKey, Mark] | None = None,
        is_full_scan: bool = True,
        permit: PermitRequest | None = None,
        **limits: Any,
    ) -> list[HeldTask | ClaimRow]:
        """All that a claim answers; `queues` are names with their caps, best first."""
        request = ClaimRequest(
            identity=WorkerIdentity(owner_id, "host-a", 1000),
            lease=timedelta(seconds=60),
            queues=[
                ServedQueue(name, 1, cap) for name, cap in (queues or {"default": None}).items()
            ],
            lanes=lanes,
            limits=ClaimLimits(**limits),
            marks=marks or {},
            is_full_scan=is_full_scan,
            permit=permit,
        )
        return self.run(statements.claim_tasks(request))

    def claimed(self, **columns: Any) -> HeldTask:
        """A new task that waits CLAIMED in worker-a's buffer."""
        return self._take(self.insert(**columns), count=0, waiting=1)

    def running(self, **columns: Any) -> HeldTask:
        """A new task that worker-a runs."""
        return self._take(self.insert(**columns), count=1, waiting=0)

    def _take(self, task_id: str, *, count: int, waiting: int) -> HeldTask:
        queue = self.task(task_id)["queue_name"]
        (taken,) = self.claim(count, waiting=waiting, queues={queue: None})
        assert taken.task_id == task_id, "another task was in front"
        return taken

    def start(self, *claims: HeldTask, owner: str = "worker-a", pid: int = 2001) -> list[str]:
        pids = [pid] * len(claims)
        return _outcomes(
            self.run(statements.start_tasks(WorkerIdentity(owner, "host-a", 1000), claims, pids))
        )

    def complete(self, *claims: HeldTask, owner: str = "worker-a") -> list[Receipt]:
        ends = [Completion(claim, OK) for claim in sorted(claims, key=lambda one: one.task_id)]
        return self.run(statements.complete_tasks(owner, ends))

    def fail(self, claim: HeldTask, *, owner: str = "worker-a", **fields: Any) -> FailReceipt:
        values = {
            "result": FAILURE,
            "attempt_outcome": "FAILED",
            "error_code": "BROKEN",
            "error_message": "broke",
        }
        end = Completion(claim, **{**values, **fields})
        return self.run(statements.fail_tasks(owner, [end]))[0]

    def give_back(self, *claims: HeldTask, owner: str = "worker-a") -> list[str]:
        return _outcomes(self.run(statements.return_tasks(owner, list(claims))))

    def beat(self, task_id: str, role: str, seconds: float) -> None:
        self.insert(
            "horsies_heartbeats", task_id=task_id, sender_id="x", role=role, sent_at=at(seconds)
        )

    def wait_until_blocked(self, pid: int) -> None:
        """Until the session with this backend pid waits for a lock."""
        eventually(
            lambda: self.execute(
                "select 1 from pg_stat_activity where pid = %s and wait_event_type = 'Lock'", pid
            )
        )


def _outcomes(receipts: Sequence[Receipt]) -> list[str]:
    return [receipt.outcome for receipt in receipts]


def connect(url: str) -> Database:
    """A connection whose every statement commits at once."""
    return Database(psycopg.connect(url, autocommit=True))
