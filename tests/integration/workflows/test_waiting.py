"""Waiting for workflows: who is told of an end or a pause, and what happens when nobody is."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from horsies import Horsies, TaskError, TaskResult
from support.apps import good, working
from support.database import Database
from support.eventually import eventually_async

NewApp = Callable[..., Horsies]


@pytest.fixture
def app(new_app: NewApp) -> Horsies:
    app = new_app()

    @app.task("number")
    async def number(value: int) -> TaskResult[int, TaskError]:
        if value < 0:
            return TaskResult(err=TaskError(error_code="NEGATIVE"))
        return TaskResult(ok=value)

    return app


def one_node(app: Horsies, value: int = 1, **options: Any) -> Any:
    node = app.tasks["number"].node(node_id="n")(value=value)
    return app.workflow("one", [node], output=node, definition_key="waiting.one", **options)


def test_pause_and_cancel_are_announced(app: Horsies, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as listening:
        handle = good(one_node(app).start())
        listening.execute("listen workflow_done")

        told: list[str] = []
        for act in (handle.pause, handle.resume, handle.cancel):
            good(act())
            told += [n.payload for n in listening.notifies(timeout=0.2)]

    assert told == [handle.workflow_id] * 2


@pytest.mark.parametrize(
    ("value", "options"),
    [(1, {}), (-1, {}), (-1, {"on_error": "pause"})],
    ids=["completed", "failed", "paused"],
)
async def test_every_end_is_announced(
    app: Horsies, database_url: str, value: int, options: dict[str, Any]
) -> None:
    with psycopg.connect(database_url, autocommit=True) as listening:
        listening.execute("listen workflow_done")
        async with working(app):
            handle = good(await one_node(app, value, **options).start_async())
            await handle.get_async(10_000)
        told = [n.payload for n in listening.notifies(timeout=0.5)]

    assert told == [handle.workflow_id]


@pytest.mark.parametrize("is_awaited", [True, False], ids=["awaited", "blocking"])
async def test_end_that_nobody_announced_is_found_by_polling(
    app: Horsies, db: Database, is_awaited: bool
) -> None:
    handle = good(await one_node(app).start_async())
    db.execute("alter table horsies_workflows disable trigger user")
    looks = counted_looks(app)

    async with asyncio.TaskGroup() as group:
        wait = handle.get_async(20_000) if is_awaited else asyncio.to_thread(handle.get, 20_000)
        waiting = group.create_task(wait)
        await eventually_async(lambda: has_looked(looks))
        db.execute("update horsies_workflows set status = 'CANCELLED'")
        ended_at = time.monotonic()

        result = await waiting

    assert result.err_value.error_code == "WORKFLOW_CANCELLED"
    assert time.monotonic() - ended_at < 5.0


def counted_looks(app: Horsies) -> list[str]:
    """The ids of workflows that the app's waiter looks at from now on."""
    waiter: Any = app.get_broker().workflow_waiter
    looks: list[str] = []
    judge = waiter._awaited.judge

    def counting(workflow_id: str, row: Any) -> Any:
        looks.append(workflow_id)
        return judge(workflow_id, row)

    waiter._awaited = replace(waiter._awaited, judge=counting)
    return looks


async def has_looked(looks: list[str]) -> bool:
    return bool(looks)


async def test_pause_by_policy_wakes_who_waits(app: Horsies, db: Database) -> None:
    async with working(app):
        handle = good(await one_node(app, -1, on_error="pause").start_async())
        result = await handle.get_async(10_000)

    assert result.err_value.error_code == "WORKFLOW_PAUSED"
    assert db.value("select status from horsies_workflows") == "PAUSED"
