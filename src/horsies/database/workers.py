"""Statements about workers: signs of life, snapshots, locks, wake-ups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from horsies.database.arrays import plain_array, quoted_array
from horsies.database.functions import call_sql
from horsies.database.rows import Ping, Scalar
from horsies.database.sql_files import query
from horsies.database.statement import Statement


@dataclass(frozen=True, slots=True)
class Beat:
    """What a worker owes signs of life for, each list sorted by id."""

    claimed_ids: Sequence[str]
    running: Sequence[tuple[str, int]]
    finalizing_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Sender:
    owner_id: str
    hostname: str
    pid: int


def beat(sender: Sender, lease: timedelta, renew_age: timedelta, owed: Beat) -> Statement[Scalar]:
    return Statement(
        call_sql("beat"),
        {
            "owner_id": sender.owner_id,
            "hostname": sender.hostname,
            "own_pid": sender.pid,
            "lease": lease,
            "renew_age": renew_age,
            "claimed_ids": plain_array(owed.claimed_ids),
            "running_ids": plain_array([task_id for task_id, _ in owed.running]),
            "running_pids": plain_array([pid for _, pid in owed.running]),
            "finalizing_ids": plain_array(owed.finalizing_ids),
        },
        Scalar,
    )


def insert_worker_state(columns: Mapping[str, object]) -> Statement[Scalar]:
    return Statement(query("workers", "insert_worker_state"), columns, Scalar)


def hold_worker_lock(worker_id: str) -> Statement[Scalar]:
    """Held as long as the session lives: proof that the worker does."""
    return Statement(query("workers", "hold_worker_lock"), {"worker_id": worker_id}, Scalar)


def notify(notifications: Sequence[tuple[str, str]]) -> Statement[Scalar]:
    parameters = {
        "channels": quoted_array([channel for channel, _ in notifications]),
        "payloads": quoted_array([payload for _, payload in notifications]),
    }
    return Statement(query("workers", "notify"), parameters, Scalar)


def ping() -> Statement[Ping]:
    return Statement(query("tasks", "ping"), {}, Ping)


def cancel_requests(worker_id: str) -> Statement[Scalar]:
    """Running tasks of this worker that someone asked to end."""
    return Statement(query("workers", "cancel_requests"), {"worker_id": worker_id}, Scalar)
