"""A shop for the dashboard's tests: tasks of every fate on one database, and clients for it."""

import asyncio
import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import httpx
from starlette.types import ASGIApp

from horsies import (
    AppConfig,
    CustomQueueConfig,
    Horsies,
    Note,
    PostgresConfig,
    QueueMode,
    Secret,
    TaskError,
    TaskResult,
    current_task,
)
from horsies.recovery.statements import record_history
from horsies.web import Role, Viewer, create_app
from support.apps import good, working
from support.database import Database
from support.eventually import eventually_async

HOSTILE = "<script>alert('horsies')</script>"
OUTSIDE = ("203.0.113.9", 40_000)
CSRF = re.compile(r'name="csrf" value="([^"]+)"')


def make_shop(database_url: str) -> Horsies:
    """An app with tasks that succeed, fail, keep secrets and say hostile things."""
    app = Horsies(
        AppConfig(
            broker=PostgresConfig(database_url=database_url, pool_size=5),
            queue_mode=QueueMode.CUSTOM,
            custom_queues=[
                CustomQueueConfig(name="default", max_concurrency=None),
                CustomQueueConfig(name="paused", max_concurrency=3),
            ],
        )
    )

    @app.task("add", queue_name="default")
    async def add(a: int, b: int = 0) -> TaskResult[int, TaskError]:
        return TaskResult(ok=a + b)

    @app.task("charge", queue_name="default")
    async def charge(
        order: int, card: Annotated[str, Secret], password: str = "hunter2"
    ) -> TaskResult[dict[str, str], TaskError]:
        return TaskResult(ok={"paid": str(order), "receipt_token": "tok-77"})

    @app.task("explode", queue_name="default", execution="blocking")
    def explode(text: str) -> TaskResult[None, TaskError]:
        current_task().progress(1, 4, text)
        raise ValueError(text)

    @app.task("wait_long", queue_name="default")
    async def wait_long() -> TaskResult[None, TaskError]:
        await asyncio.sleep(600)
        return TaskResult(ok=None)

    @app.task("rest", queue_name="paused")
    async def rest(number: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=number)

    return app


async def fill(app: Horsies, db: Database) -> dict[str, str]:
    """Tasks in all states, by the name of what they are; a queue that is paused."""
    tasks = app.tasks
    good(await app.operations.pause_queue_async("paused", note=Note("ann", "moving house")))
    ids = {
        "completed": good(tasks["add"].send(2, b=3)).task_id,
        "secret": good(tasks["charge"].send(7, card="4242-4242")).task_id,
        "failed": good(tasks["explode"].send(HOSTILE)).task_id,
        "waiting": good(tasks["rest"].with_options(tags=["vip"]).send(1)).task_id,
        "second": good(tasks["rest"].send(2)).task_id,
    }
    ended = [ids[name] for name in ("completed", "secret", "failed")]

    async def have_ended() -> bool:
        return all(db.status(one) in ("COMPLETED", "FAILED") for one in ended)

    async with working(app):
        await eventually_async(have_ended, within=30)
    while not db.run(record_history())[0].value:
        pass
    cancelled = good(tasks["rest"].send(3)).task_id
    good(await app.operations.cancel_async(cancelled))
    expired = good(tasks["rest"].send(4)).task_id
    past = datetime.now(UTC) - timedelta(minutes=1)
    db.execute(
        "update horsies_tasks set status = 'EXPIRED', failed_at = %s where id = %s", past, expired
    )
    return {**ids, "cancelled": cancelled, "expired": expired}


def operators(_: object) -> Viewer:
    """Everyone may steer."""
    return Viewer("local user", Role.OPERATOR)


@asynccontextmanager
async def browsing(
    app: Horsies | ASGIApp, *, client: tuple[str, int] = ("127.0.0.1", 40_000), **settings: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the app's dashboard; it may steer unless `authenticate` says otherwise."""
    settings.setdefault("authenticate", operators)
    served: Any = create_app(app, **settings) if isinstance(app, Horsies) else app
    transport = httpx.ASGITransport(app=served, client=client)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as made:
        yield made


async def csrf_of(client: httpx.AsyncClient, path: str = "/queues") -> str:
    """The token that forms of this client carry; the cookie stays in the client."""
    found = CSRF.search((await client.get(path)).text)
    assert found is not None
    return found[1]


async def post(client: httpx.AsyncClient, path: str, /, **fields: Any) -> httpx.Response:
    """Send a form as our own pages do."""
    csrf = await csrf_of(client)
    return await client.post(path, data={"csrf": csrf, **fields})


class Clicks:
    """A viewer who opens pages and sends their forms, and expects a certain answer."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def open(self, path: str, status: int = 200) -> str:
        """The source of a page."""
        answer = await self._client.get(path)
        assert answer.status_code == status, answer.text
        return answer.text

    async def send(self, path: str, status: int = 200, **fields: Any) -> str:
        """Send a form and follow to the page that says what was done."""
        await self._client.get("/maintenance")  # brings the cookie that forms are checked against
        fields["csrf"] = self._client.cookies["horsies_csrf"]
        answer = await self._client.post(path, data=fields, follow_redirects=True)
        assert answer.status_code == status, answer.text
        return answer.text


ANN = Viewer("ann", Role.OPERATOR)


@asynccontextmanager
async def clicking(app: Horsies, viewer: Viewer = ANN) -> AsyncIterator[Clicks]:
    """The dashboard, with a cache that hardly lasts, as one viewer uses it; closes the app."""
    try:
        async with browsing(app, authenticate=lambda _: viewer, tick_rate=20) as client:
            yield Clicks(client)
    finally:
        await app.get_broker().close_async()


def texts(page: str, css_class: str) -> list[str]:
    """What the elements with exactly this class say."""
    found = re.findall(rf'class="{re.escape(css_class)}"[^>]*>([^<]*)<', page)
    return [html.unescape(text).strip() for text in found]
