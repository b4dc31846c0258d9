"""A fleet that has nothing to do: what it asks of the server does not grow faster than it does."""

from contextlib import AsyncExitStack

import pytest

from horsies import Horsies, TaskError, TaskResult
from horsies.clock import monotonic
from support.apps import good, make_app, working
from support.eventually import eventually_async
from support.faults import IS_SHORT
from support.traffic import Traffic, counted

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(240)]

FLEET = 15 if IS_SHORT else 50
SENDS = 10


async def snapshots(traffic: Traffic, count: int) -> None:
    """Until the workers have stored so many each: one in five seconds."""

    async def are_stored() -> bool:
        return traffic.statements["horsies_worker_states"] >= count * FLEET

    await eventually_async(are_stored, within=60)


def idle_app(url: str) -> Horsies:
    app = make_app(url)

    @app.task("nothing")
    async def nothing() -> TaskResult[int, TaskError]:
        return TaskResult(ok=1)

    return app


async def test_idle_workers_ask_seldom_share_their_duties_and_do_not_all_run_for_one_task(
    database_url: str,
) -> None:
    with counted(database_url) as (traffic, url):
        async with AsyncExitStack() as fleet:
            for _ in range(FLEET):
                app = idle_app(url)
                fleet.push_async_callback(app.get_broker().close_async)
                await fleet.enter_async_context(working(app))
            await snapshots(traffic, 2)  # each knows its peers

            traffic.clear()
            started_at = monotonic()
            await snapshots(traffic, 4)
            seconds = monotonic() - started_at
            statements = dict(traffic.statements)

            traffic.clear()
            for _ in range(SENDS):
                handle = good(await app.tasks["nothing"].send_async())
                assert (await handle.get_async(30_000)).is_ok()
            looks = traffic.statements["horsies_claim_tasks_v2"]

    # Four are expected for each, and polls besides; all of them would be FLEET.
    assert SENDS <= looks <= SENDS * FLEET / 2, looks
    assert sum(statements.values()) <= FLEET * seconds, statements
    # Asked for every 10 s and every 30 s of the whole fleet; one more may fall into any time.
    assert statements.get("horsies_record_history", 0) <= seconds / 10 * 1.2 + 1, statements
    for duty in ("expire_tasks_v2", "recover_workflows", "prune_heartbeats", "lost_runs"):
        assert statements.get(f"horsies_{duty}", 0) <= seconds / 30 * 1.2 + 1, statements
