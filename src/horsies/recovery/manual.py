"""Recovery by hand: what the broker lists and repairs on request."""

from datetime import timedelta
from typing import Any

from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.database.operation import Operation
from horsies.database.statement import Scalar
from horsies.observability.events import ExpiredEvent
from horsies.observability.hooks import EventHooks
from horsies.recovery.statements import (
    BATCH,
    ExpiredTask,
    LostRun,
    NamedTask,
    WorkerStats,
    expire_tasks,
    expired_tasks,
    lost_runs,
    requeue_stale_claims,
    worker_stats,
)
from horsies.result import Err, Ok
from horsies.result.broker import BrokerResult

_LISTED = (
    "id",
    "worker_hostname",
    "worker_pid",
    "worker_process_name",
    "last_heartbeat",
    "started_at",
    "task_name",
)


def list_lost_runs(silent_for: timedelta) -> Operation[LostRun, list[dict[str, object]]]:
    return Operation(
        lost_runs(silent_for),
        lambda rows: [{name: getattr(row, name) for name in _LISTED} for row in rows],
        BrokerErrorCode.MONITORING_QUERY_FAILED,
    )


def list_expired_tasks() -> Operation[ExpiredTask, list[dict[str, object]]]:
    return Operation(
        expired_tasks(),
        lambda rows: [row._asdict() for row in rows],
        BrokerErrorCode.MONITORING_QUERY_FAILED,
    )


def list_worker_stats() -> Operation[WorkerStats, list[dict[str, object]]]:
    return Operation(
        worker_stats(),
        lambda rows: [row._asdict() for row in rows],
        BrokerErrorCode.MONITORING_QUERY_FAILED,
    )


async def expire_overdue(database: Database, hooks: EventHooks) -> BrokerResult[int]:
    expired: list[NamedTask] = []

    def read(rows: list[NamedTask]) -> int:
        expired.extend(rows)
        return len(rows)

    operation = Operation(expire_tasks(), read, BrokerErrorCode.CLEANUP_FAILED)
    done = await _in_batches(database, operation)
    for task in expired:
        await hooks.tell_async("expired", ExpiredEvent(*task, None))
    return done


async def requeue_stale(database: Database, stale_after: timedelta) -> BrokerResult[int]:
    statement = requeue_stale_claims(stale_after, [])
    return await _in_batches(database, Operation(statement, _count, BrokerErrorCode.CLEANUP_FAILED))


async def _in_batches(database: Database, operation: Operation[Any, int]) -> BrokerResult[int]:
    total = 0
    while True:
        changed = await database.perform_async(operation)
        if isinstance(changed, Err):
            return changed
        total += changed.ok_value
        if changed.ok_value < BATCH:
            return Ok(total)


def _count(rows: list[Scalar]) -> int:
    return int(rows[0].value)
