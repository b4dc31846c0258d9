"""Giving up runs whose executor is gone: the retry decision is pure.

The write re-checks under the row lock.
"""

import random
from datetime import timedelta

from horsies.broker.session import FAILURES, Session, operation_error
from horsies.broker.types import BrokerErrorCode, BrokerResult
from horsies.codec.results import serialize_error_payload
from horsies.database.recovery import LostRun, fail_lost_tasks, stale_runs
from horsies.database.rows import StaleRun
from horsies.result import Err, Ok, OperationalErrorCode, TaskError, TaskResult
from horsies.tasks.options import parse_task_options
from horsies.tasks.retry import retry_delay_s

_random = random.SystemRandom()


class LostRuns:
    """T9 and T8 for the reaper and for the broker's manual call."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def give_up(self, stale_after: timedelta) -> BrokerResult[int]:
        """End every run without a sign of life for that long; how many were retried or failed."""
        total = 0
        try:
            await self._session.ensure_schema_async()
            while stale := await self._session.run_async(stale_runs(stale_after)):
                lost = [judge_lost(run, stale_after) for run in stale]
                receipts = await self._session.run_async(fail_lost_tasks(stale_after, lost))
                total += len(receipts)
                if not receipts:  # all of them locked or revived meanwhile
                    break
        except FAILURES as error:
            return Err(operation_error(BrokerErrorCode.CLEANUP_FAILED, error))
        return Ok(total)


def judge_lost(run: StaleRun, stale_after: timedelta, reason: str | None = None) -> LostRun:
    """What becomes of a lost run: its error, and whether its policy wants another try."""
    message = f"Worker process crashed: {reason or 'no sign of life'}"
    error = TaskError(
        error_code=OperationalErrorCode.WORKER_CRASHED,
        message=message,
        data={
            "stale_threshold_ms": int(stale_after.total_seconds() * 1000),
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
    return LostRun(run, result, message, reason or message, delay)
