"""The rights of the documented roles are enough for their work, and not for more."""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from horsies import Horsies
from horsies.result import TaskError, TaskResult
from support.apps import good, make_app, working
from support.cluster import Server

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "secure-the-database.md"


@pytest.fixture
def suffix(server: Server, database_url: str) -> Iterator[str]:
    """Apply the page to the test's database, with role names of this test alone."""
    suffix = uuid.uuid4().hex[:8]
    script = "\n".join(re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL))
    script = re.sub(r"\bshop_(\w+)", rf"shop_\1_{suffix}", script)
    roles = [f"shop_{role}_{suffix}" for role in ("producer", "worker", "viewer")]
    admin_url = urlunsplit(urlsplit(server.url)._replace(path=urlsplit(database_url).path))
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(script.encode())
    yield suffix
    with psycopg.connect(admin_url, autocommit=True) as admin:
        for role in roles:
            admin.execute(f"drop owned by {role}".encode())
            admin.execute(f"drop role {role}".encode())


def url_of(database_url: str, role: str) -> str:
    parts = urlsplit(database_url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}@{host}"))


def app_of(url: str) -> Horsies:
    app = make_app(url)

    @app.task("add")
    async def add(a: int, b: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=a + b)

    return app


async def test_each_role_can_do_its_work(database_url: str, suffix: str) -> None:
    producer = app_of(url_of(database_url, f"shop_producer_{suffix}"))
    worker = app_of(url_of(database_url, f"shop_worker_{suffix}"))
    viewer = app_of(url_of(database_url, f"shop_viewer_{suffix}"))
    add = producer.tasks["add"]

    async with working(worker):
        handle = good(await add.send_async(1, 2))
        many = good(await add.send_many_async([(1, 1), (2, 2)]))
        keyed = good(await add.with_options(unique_key="k").send_async(3, 3))
        results = [await one.get_async(15_000) for one in (handle, *many, keyed)]
        again = good(await handle.rerun_async())
        later = good(await add.with_options(delay=60).send_async(1, 1))
        cancelled = good(await later.cancel_async())
        seen = good(await viewer.handle(handle.task_id).info_async(include_attempts=True))
    for app in (producer, worker, viewer):
        await app.get_broker().close_async()

    assert [result.ok_value for result in results] == [3, 2, 4, 6]
    assert again is not None
    assert cancelled is True
    assert seen is not None
    assert seen.attempts is not None


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("producer", "delete from horsies_tasks"),
        ("producer", "insert into horsies_worker_states default values"),
        ("producer", "truncate horsies_tasks"),
        ("producer", "drop table horsies_tasks"),
        ("worker", "alter table horsies_tasks add column x text"),
        ("worker", "create function horsies_x() returns void language sql as ''"),
        ("viewer", "update horsies_tasks set status = 'CANCELLED'"),
        ("viewer", "insert into horsies_tasks default values"),
    ],
)
def test_no_role_can_do_more(database_url: str, suffix: str, role: str, statement: str) -> None:
    url = url_of(database_url, f"shop_{role}_{suffix}")

    with psycopg.connect(url) as connection, pytest.raises(InsufficientPrivilege):
        connection.execute(statement.encode())
