"""A worker that stands still past the threshold, as in a paused virtual machine, and wakes up."""

import asyncio
import signal

import pytest

from horsies.config import RecoveryConfig, WorkerResilienceConfig
from horsies.database.connection import Address
from horsies.recovery.reaper import Reaper
from horsies.worker.service_connection import ServiceConnection
from support.eventually import eventually
from support.faults import scene

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(120)]

RECOVERY = {"running_stale_threshold_ms": 2_000}


async def _reap(url: str) -> int:
    """One pass of a peer; how many runs it found lost."""
    connection = ServiceConnection(Address(url, None), "horsies test", WorkerResilienceConfig())
    config = RecoveryConfig(runner_heartbeat_interval_ms=1_000, **RECOVERY)
    try:
        return (await Reaper(connection, config, host_key="elsewhere").run_once()).lost
    finally:
        await connection.close()


@pytest.mark.parametrize("kind", ["child", "coroutine", "thread"])
def test_woken_worker_claims_again_what_still_runs_in_it(database_url: str, kind: str) -> None:
    with scene(database_url, recovery=RECOVERY) as play:
        worker = play.start_worker("--processes", "2", "--threads", "2")
        play.send(kind, range(1), -1)
        eventually(lambda: play.begun()[0] == 1, within=30)

        worker.send_signal(signal.SIGSTOP)
        eventually(lambda: asyncio.run(_reap(database_url)) == 1, within=30)
        worker.send_signal(signal.SIGCONT)
        # The second attempt does not share its id with the first one, which is stopped.
        eventually(lambda: play.begun()[0] == 2, within=60)
        play.open_gate()

        play.wait_until_all_ended(within=30)
        attempts = play.rows(
            "select attempt, outcome, error_code from horsies_task_attempts order by attempt"
        )
        assert attempts == [(1, "FAILED", "WORKER_CRASHED"), (2, "COMPLETED", None)]
        began_after = (
            "select a.started_at > b.finished_at from horsies_task_attempts a, "
            "horsies_task_attempts b where a.attempt = 2 and b.attempt = 1"
        )
        assert play.scalar(began_after)
        # Both slots work: neither is held by the run that was given up.
        play.send(kind, range(1, 9))
        play.wait_until_all_ended(within=30)
        assert worker.poll() is None
        assert "KeyError" not in play.log()
