"""A flood of notifications costs a worker neither memory nor heartbeats."""

import asyncio
from collections.abc import Callable

import psutil
import pytest

from horsies import Horsies
from horsies.config import RecoveryConfig
from horsies.result import TaskError, TaskResult
from support.apps import good, working
from support.cluster import DurableCluster
from support.database import Database
from support.eventually import eventually, eventually_async


@pytest.fixture
def database_url(durable_cluster: DurableCluster) -> str:
    """A server's queue of notifications is only as short as its slowest listener: take our own."""
    return durable_cluster.url


async def test_flood_of_pings_costs_neither_memory_nor_heartbeats(
    new_app: Callable[..., Horsies], db: Database
) -> None:
    """The test's own statements block the event loop: whatever is left to it piles up there."""
    app = new_app(recovery=RecoveryConfig(runner_heartbeat_interval_ms=1_000))
    await app.get_broker().ensure_schema_initialized()
    gate = asyncio.Event()

    @app.task("held")
    async def held() -> TaskResult[None, TaskError]:
        await gate.wait()
        return TaskResult(ok=None)

    async with working(app) as worker:
        handle = good(await held.send_async())
        beats = "select count(*) from horsies_heartbeats"
        await eventually_async(lambda: asyncio.to_thread(db.value, beats))
        before = psutil.Process().memory_info().rss
        for _ in range(40):  # 80 MB of pings
            db.execute(
                "select pg_notify('horsies_worker_ping', repeat('x', 2000) || g), "
                "pg_notify('task_queue_default', 'x' || g), pg_notify('horsies_cancel', 'x' || g) "
                "from generate_series(1, 1000) g"
            )
        eventually(lambda: db.value("select pg_notification_queue_usage()") == 0, within=80)
        grown_mb = (psutil.Process().memory_info().rss - before) / 1_000_000
        eventually(lambda: db.value(beats) >= 2, within=5)

        async def answers() -> list[str]:
            pongs = good(await app.ping_workers_async(timeout_ms=2_000))
            return [pong.worker_id for pong in pongs]

        answered = await eventually_async(answers, within=40)
        gate.set()
        await handle.get_async(10_000)
        longest = db.value(
            "select extract(epoch from max(gap)) from (select sent_at - lag(sent_at) over "
            "(order by sent_at) as gap from horsies_heartbeats) g"
        )

    assert answered == [worker.context.identity.worker_id]
    assert grown_mb < 60
    assert longest < 5
