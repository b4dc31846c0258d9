"""Two parties want the same row at the same time: exactly one gets it, and the other knows."""

import asyncio
import signal
import threading
from datetime import UTC, datetime, timedelta

import pytest

from horsies.config import RecoveryConfig, WorkerResilienceConfig
from horsies.database.connection import Address
from horsies.recovery.reaper import Reaper
from horsies.worker.service_connection import ServiceConnection
from support.database import connect, retry_options
from support.eventually import eventually
from support.faults import scene
from support.proxy import proxied

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.mark.parametrize("is_claim", [True, False], ids=["claims", "runs"])
async def test_reapers_at_once_recover_each_row_once(database_url: str, is_claim: bool) -> None:
    database = connect(database_url)
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    columns = {"claimed_at": long_ago, "claimed_by_worker_id": "gone"}
    if is_claim:
        columns |= {"status": "CLAIMED", "claimed": True, "claim_expires_at": long_ago}
    else:
        options = {"max_retries": 3, "task_options": retry_options(3, ["WORKER_CRASHED"])}
        columns |= {"status": "RUNNING", "started_at": long_ago, "worker_pid": 1, **options}
    for _ in range(300):
        database.insert(**columns)
    connections = [
        ServiceConnection(Address(database_url), "reaper", WorkerResilienceConfig())
        for _ in range(4)
    ]

    async with asyncio.TaskGroup() as group:
        passes = [
            group.create_task(Reaper(connection, RecoveryConfig(), host_key="here").run_once())
            for connection in connections
        ]
    swept = [one.result() for one in passes]

    for connection in connections:
        await connection.close()
    assert sum(one.requeued + one.lost for one in swept) == 300
    assert database.statuses() == {"PENDING": 300}
    attempts = "select count(distinct task_id) from horsies_task_attempts where attempt = 1"
    assert database.value(attempts) == (0 if is_claim else 300)
    database.connection.close()


def test_cancel_and_completion_at_once_leave_one_end(database_url: str) -> None:
    with scene(database_url) as play:
        workers = [play.start_worker("--processes", "2", "--concurrency", "5") for _ in range(2)]
        for worker in workers:
            play.wait_ready(worker)

        def race() -> bool:
            """Whether every end was seen: completed, withdrawn, cancelled while it ran."""
            first = len(play.numbers)
            seconds = 0.02 + first / 1000  # a slow machine needs longer tasks to meet them running
            for kind in ("coroutine", "child", "thread"):
                number = len(play.numbers)
                play.send_many(kind, range(number, number + 20), seconds)
            handles = [play.app.handle(task_id) for task_id in list(play.numbers)[first:]]
            asking = threading.Thread(
                target=lambda: [handle.cancel(running=True) for handle in handles[::3]]
            )
            asking.start()
            withdrawn.extend(h.task_id for h in handles[1::3] if h.cancel().unwrap())
            asking.join()
            play.wait_until_all_ended(within=60)
            stopped = "select 1 from horsies_task_attempts where error_code = 'TASK_CANCELLED'"
            return bool(play.count("COMPLETED") and withdrawn and play.rows(stopped))

        withdrawn: list[str] = []
        eventually(race, within=90)

        play.assert_invariants()
        assert play.count("COMPLETED") + play.count("CANCELLED") == len(play.numbers)
        states = dict(play.rows("select id, status from horsies_tasks"))
        begun = play.begun()
        assert {(states[task_id], begun[play.numbers[task_id]]) for task_id in withdrawn} == {
            ("CANCELLED", 0)
        }


@pytest.mark.parametrize("prefetch", [0, 20])
def test_expiry_and_claim_at_once_leave_one_end(database_url: str, prefetch: int) -> None:
    settings = {"app": {"prefetch_buffer": prefetch, "claim_lease_ms": 60_000}}
    with scene(database_url, **settings, recovery={"check_interval_ms": 1_000}) as play:
        workers = [play.start_worker("--concurrency", "2") for _ in range(2)]
        for worker in workers:
            play.wait_ready(worker)

        def race() -> bool:
            """Whether both ends were seen."""
            first, start = len(play.numbers), datetime.now(UTC)
            for step in range(200):
                deadline = start + timedelta(milliseconds=10 * step)
                number = range(first + step, first + step + 1)
                play.send("coroutine", number, 0.05, good_until=deadline)
            play.wait_until_all_ended(within=60)
            return bool(play.count("COMPLETED") and play.count("EXPIRED"))

        eventually(race, within=90)

        play.assert_invariants()
        assert play.count("COMPLETED", "EXPIRED") == len(play.numbers)
        assert not play.rows(
            "select t.id from horsies_task_attempts a join horsies_tasks t on t.id = a.task_id "
            "where t.status = 'EXPIRED' or a.started_at >= t.good_until"
        )


def test_late_finish_of_a_reaped_task_is_refused(database_url: str) -> None:
    recovery = {"running_stale_threshold_ms": 2_000}
    with proxied(database_url) as (proxy, url), scene(url, recovery=recovery) as play:
        frozen = play.start_worker()
        play.send("coroutine", range(1), -1)
        eventually(lambda: play.begun()[0] == 1, within=30)
        frozen.send_signal(signal.SIGSTOP)
        proxy.hang_up()
        play.start_worker()
        eventually(lambda: play.begun()[0] == 2, within=30)

        frozen.send_signal(signal.SIGCONT)
        play.open_gate()

        play.wait_until_all_ended(within=30)
        eventually(lambda: "its claim was lost, the result is dropped" in play.log(), within=30)
        play.assert_invariants()
        ends = "select attempt, error_code from horsies_task_attempts order by attempt"
        assert play.rows(ends) == [(1, "WORKER_CRASHED"), (2, None)]
        assert frozen.poll() is None
