"""Pause, resume and limit queues and drain workers while they run; who did it, and why."""

import getpass
import os
import socket
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from horsies.database.functions import call
from horsies.database.sql_files import query
from horsies.database.statement import Scalar, Statement
from horsies.operations.reading import ALIVE_WITHIN, WorkerRow, workers
from horsies.operations.steps import RefusedError, Steps


@dataclass(frozen=True, slots=True)
class Note:
    """Who steers, and why; kept in `horsies_audit`. By default, this user on this machine."""

    by: str | None = None
    reason: str | None = None

    @property
    def actor(self) -> str:
        return self.by or f"{_user()}@{socket.gethostname()}"


UNSAID = Note()


class AuditEntry(NamedTuple):
    """One action of an operator."""

    id: int
    done_at: datetime
    done_by: str
    action: str
    target: str
    reason: str | None
    details: dict[str, Any] | None


def pause_steps(queue: str, note: Note) -> Steps[bool]:
    _check_name(queue)
    ((is_changed,),) = yield call(
        "pause_queue", Scalar, queue=queue, actor=note.actor, reason=note.reason
    )
    return bool(is_changed)


def resume_steps(queue: str, note: Note) -> Steps[bool]:
    _check_name(queue)
    ((is_changed,),) = yield call(
        "resume_queue", Scalar, queue=queue, actor=note.actor, reason=note.reason
    )
    return bool(is_changed)


def limit_steps(queue: str, max_concurrency: int | None, note: Note) -> Steps[None]:
    _check_name(queue)
    if max_concurrency is not None and not 1 <= max_concurrency <= 2**31 - 1:
        raise RefusedError(f"a limit is at least 1, not {max_concurrency}; to stop it, pause it")
    yield call(
        "limit_queue",
        Scalar,
        queue=queue,
        new_limit=max_concurrency,
        actor=note.actor,
        reason=note.reason,
    )


def drain_steps(prefix: str, note: Note) -> Steps[str]:
    """Ask one living worker to drain; its id, or its host and pid, may be shortened."""
    if not prefix.strip():
        raise RefusedError("name a worker: its id, the beginning of it, or host:pid")
    rows: list[WorkerRow] = yield workers(ALIVE_WITHIN)
    found = [
        row
        for row in rows
        if not row.is_gone and (row.worker_id.startswith(prefix) or prefix == place_of(row))
    ]
    found = [row for row in found if row.worker_id == prefix] or found
    if len(found) != 1:
        which = "several workers" if found else "no living worker"
        named = "".join(f"\n  {row.worker_id} {place_of(row)}" for row in (found or rows)[:10])
        raise RefusedError(f"{prefix!r} names {which}; give an id or host:pid of{named or ' one'}")
    (worker,) = found
    yield call(
        "drain_worker", Scalar, worker=worker.worker_id, actor=note.actor, reason=note.reason
    )
    return worker.worker_id


def audit_steps(limit: int) -> Steps[list[AuditEntry]]:
    """The last actions, the latest first."""
    rows: list[AuditEntry] = yield Statement(
        query("operations", "audit"), {"limit": limit}, AuditEntry
    )
    return rows


def record_steps(action: str, target: str, note: Note, details: dict[str, object]) -> Steps[None]:
    if not 1 <= len(action) <= 32:
        raise RefusedError("the name of an action has 1 to 32 characters")
    yield record(note, action, target, details)


def record(note: Note, action: str, target: str, details: dict[str, object]) -> Statement[Scalar]:
    return call(
        "record_action",
        Scalar,
        actor=note.actor,
        action=action,
        target=target,
        reason=note.reason,
        details=details,
    )


def place_of(row: WorkerRow) -> str:
    return f"{row.hostname}:{row.pid}"


def _check_name(queue: str) -> None:
    if not 1 <= len(queue) <= 100:
        raise RefusedError("the name of a queue has 1 to 100 characters")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return f"uid {os.getuid()}"
