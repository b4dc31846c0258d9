"""Lost runs: their ending is judged without side effects, and written under the row lock.

The runs of a dead worker of this host are told apart first: those whose user code never began go
back uncounted.
"""

import logging
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, TypeVar

from horsies.codec.results import serialize_error_payload
from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.database.operation import FAILURES, operation_error
from horsies.database.statement import Receipt, Statement
from horsies.observability.events import EventName
from horsies.observability.hooks import EventHooks
from horsies.recovery.begun_slots import find_begun_slots
from horsies.recovery.process_identity import is_executing
from horsies.recovery.statements import (
    LostRun,
    LostRunEnding,
    fail_lost_runs,
    lost_runs,
    named_tasks,
    return_unheld_tasks,
    running_tasks_of_worker,
)
from horsies.recovery.telling import Tell, has_listeners, tell_of_lost_runs
from horsies.result import Err, Ok, OperationalErrorCode, TaskError, TaskResult
from horsies.result.broker import BrokerResult
from horsies.tasks.options import parse_task_options
from horsies.tasks.retry import retry_delay_s

Row = TypeVar("Row")

_logger = logging.getLogger("horsies.reaper")

PROCESS_GONE = "worker process no longer running"
_AT_ONCE = timedelta(0)
_random = random.SystemRandom()


class Connection(Protocol):
    """What a pass needs of a database connection."""

    async def run(self, statement: Statement[Row], /) -> list[Row]: ...


class Run(Protocol):
    """Performs a statement."""

    async def __call__(self, statement: Statement[Row], /) -> list[Row]: ...


def judge_lost(run: LostRun, silent_for: timedelta, reason: str | None = None) -> LostRunEnding:
    """What becomes of a lost run: its error, and whether its policy wants another try."""
    message = f"Worker process crashed: {reason or 'no sign of life'}"
    error = TaskError(
        error_code=OperationalErrorCode.WORKER_CRASHED,
        message=message,
        data={
            "stale_threshold_ms": int(silent_for.total_seconds() * 1000),
            "worker_pid": run.worker_pid,
            "worker_hostname": run.worker_hostname,
            "worker_id": run.owner_id,
            "started_at": run.started_at.isoformat() if run.started_at else None,
            "detected_at": run.now_at.isoformat(),
        },
    )
    policy = parse_task_options(run.task_options).retry_policy
    delay = retry_delay_s(policy, "WORKER_CRASHED", run.attempt, random=_random)
    result = serialize_error_payload(TaskResult(err=error))
    return LostRunEnding(run, result, message, reason or message, delay)


async def end_lost_runs(
    database: Database, silent_for: timedelta, hooks: EventHooks
) -> BrokerResult[int]:
    """End every run without a sign of life for that long; how many were retried or failed."""
    told: list[tuple[EventName, object]] = []

    def tell(name: EventName, event: object) -> None:
        told.append((name, event))

    ended = await _end_all_lost(database, silent_for, tell if has_listeners(hooks) else None)
    for name, event in told:
        await hooks.tell_async(name, event)
    return ended


async def _end_all_lost(
    database: Database, silent_for: timedelta, tell: Tell | None
) -> BrokerResult[int]:
    total = 0
    try:
        await database.ensure_schema_async()
        while lost := await database.run_async(lost_runs(silent_for)):
            endings = [judge_lost(run, silent_for) for run in lost]
            returned, ended = await _write(database.run_async, silent_for, endings, tell)
            total += ended
            if not returned + ended:  # all of them locked, stuck or revived meanwhile
                break
    except FAILURES as error:
        return Err(operation_error(BrokerErrorCode.CLEANUP_FAILED, error))
    return Ok(total)


async def end_runs_of_dead_worker(
    connection: Connection, worker_id: str, runs: Sequence[LostRun], tell: Tell | None
) -> tuple[int, int]:
    """End a dead worker's runs; return how many went back unbegun and how many were lost."""
    # Children die with their worker; until the last one has, none of its runs is touched.
    if any(map(is_executing, runs)):
        return 0, 0
    begun_ids, returned = _begun_ids(worker_id), 0
    if begun_ids is not None:
        returned = (await connection.run(return_unheld_tasks(worker_id, sorted(begun_ids))))[
            0
        ].returned
    # An unbegun row that another session has locked stays; the next pass gives it back.
    endings = [
        judge_lost(run, _AT_ONCE, PROCESS_GONE)
        for run in await connection.run(running_tasks_of_worker(worker_id))
        if begun_ids is None or run.id in begun_ids
    ]
    unpermitted, lost = await end_runs(connection, _AT_ONCE, endings, tell)
    return returned + unpermitted, lost


async def end_runs(
    connection: Connection,
    silent_for: timedelta,
    endings: Sequence[LostRunEnding],
    tell: Tell | None,
) -> tuple[int, int]:
    """Write endings; return how many went back unbegun and how many were lost.

    A row that cannot be ended is reported and passed over.
    """
    if not endings:
        return 0, 0
    return await _write(connection.run, silent_for, endings, tell)


async def _write(
    run: Run, silent_for: timedelta, endings: Sequence[LostRunEnding], tell: Tell | None
) -> tuple[int, int]:
    # Names first: once the ends are committed, nothing may keep them from being told.
    named = [] if tell is None else await run(named_tasks([ending.run.id for ending in endings]))
    receipts = await run(fail_lost_runs(silent_for, endings))
    if tell is not None:
        tell_of_lost_runs(tell, {task.task_id: task for task in named}, endings, receipts)
    return _count_ended(receipts)


def _count_ended(receipts: Sequence[Receipt]) -> tuple[int, int]:
    stuck = [receipt for receipt in receipts if receipt.outcome.startswith("stuck")]
    for receipt in stuck:
        _logger.error("lost run of task %s is %s", receipt.task_id, receipt.outcome)
    returned = sum(receipt.outcome == "returned" for receipt in receipts)
    return returned, len(receipts) - len(stuck) - returned


def _begun_ids(worker_id: str) -> set[str] | None:
    """Runs of a dead worker whose user code had begun, where its begun slots tell."""
    begun_slots = find_begun_slots(worker_id)
    if begun_slots is None:
        return None
    begun_ids = begun_slots.begun_ids()
    begun_slots.close()
    return begun_ids


def has_left_begun_slots(worker_id: str) -> bool:
    """Whether this was a worker of this host, is gone, and its slots still tell what had begun."""
    begun_slots = find_begun_slots(worker_id)
    if begun_slots is None:
        return False
    try:
        return begun_slots.is_abandoned
    finally:
        begun_slots.close()
