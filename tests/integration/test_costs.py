"""What a task costs, counted: statements, round trips, transactions, rows, index entries.

Counts do not depend on the machine, so they may fail a build. The limits are what the design
promises, with room only where a busy machine makes smaller batches.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from horsies import Horsies
from horsies.result import TaskError, TaskResult
from support import cluster
from support.apps import good, make_app, working
from support.database import Database
from support.eventually import eventually, eventually_async
from support.traffic import Traffic, counted
from support.urls import changed

COUNT = 2_000
PREPARED_AFTER = 7  # the driver prepares a statement once, by a round trip of its own
PREPARED_KINDS = 10  # how many statements of a worker come often enough for that
CHANNELS = ("task_new", "task_queue_default", "task_done", "horsies_task_status")
OPEN = "select 1 from horsies_tasks where status in ('PENDING', 'CLAIMED', 'RUNNING') limit 1"
WRITTEN = """
    select relname, n_tup_ins + n_tup_upd + n_tup_del as n from pg_stat_user_tables
    where relname not in
        ('horsies_worker_states', 'horsies_queue_history', 'horsies_duties', 'ledger')
"""
READ = """
    select sum(coalesce(idx_tup_fetch, 0) + coalesce(seq_tup_read, 0)) from pg_stat_user_tables
    where relname in ('horsies_tasks', 'horsies_task_attempts')
"""
# An entry is also written by the record that splits a page.
ENTRIES = """
    select count(*) from pg_get_wal_block_info(%s, %s) b
    where b.resource_manager = 'Btree' and b.block_id = 0
      and b.reldatabase = (select d.oid from pg_database d where d.datname = current_database())
      and (b.record_type like 'INSERT%%' and b.record_type <> 'INSERT_UPPER'
           or b.record_type like 'SPLIT%%')
      and b.relfilenode in (select pg_relation_filenode(i.indexrelid) from pg_index i
          where i.indrelid in ('horsies_tasks'::regclass, 'horsies_task_attempts'::regclass))
"""


@pytest.fixture
def traffic(database_url: str) -> Iterator[Traffic]:
    with counted(database_url) as (traffic, url):
        traffic.url = url  # type: ignore[attr-defined]
        yield traffic


@pytest.fixture
async def app(traffic: Any) -> AsyncIterator[Horsies]:
    """An app whose every statement is counted; its schema is known to be there."""
    app = make_app(traffic.url)

    @app.task("noop")
    async def noop(number: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=number)

    app.get_broker().database.ensure_schema()
    yield app
    await app.get_broker().close_async()


async def work_off(app: Horsies, db: Database, count: int) -> None:
    async def is_done() -> bool:
        # Read by a look at two indexes: what the tasks themselves read is counted.
        return not db.execute(OPEN)

    async with working(app, concurrency=1_000):
        await eventually_async(is_done, within=60)


def written(db: Database) -> Counter[str]:
    """Row versions written so far, by table; sessions report theirs when they end."""
    db.execute("select pg_stat_clear_snapshot()")
    return Counter({row["relname"]: row["n"] for row in db.execute(WRITTEN)})


async def test_worker_sends_few_statements_for_many_tasks(
    app: Horsies, traffic: Traffic, db: Database
) -> None:
    good(app.tasks["noop"].send_many((n,) for n in range(COUNT)))
    traffic.clear()

    await work_off(app, db, COUNT)

    # Five claims and four completions of 500, if nothing interrupts; the rest is the start-up and
    # the first pass of each service, however many tasks there are.
    assert traffic.statements["horsies_claim_tasks_v2"] <= 20
    assert traffic.statements["horsies_end_tasks"] <= 20
    assert traffic.statements.total() <= 100
    assert traffic.round_trips <= traffic.statements.total() + PREPARED_KINDS
    assert traffic.transactions <= traffic.statements.total() + PREPARED_KINDS


async def test_task_is_written_three_times_and_its_attempt_once(app: Horsies, db: Database) -> None:
    before = written(db)

    good(app.tasks["noop"].send_many((n,) for n in range(COUNT)))
    await work_off(app, db, COUNT)
    await app.get_broker().close_async()

    # Inserted, started, completed; with one attempt row. Nothing else, in no other table.
    expected = {"horsies_tasks": 3 * COUNT, "horsies_task_attempts": COUNT}
    eventually(lambda: written(db) - before == Counter(expected))
    # Found to start, to write the start, to write the end, and by the attempt's foreign key.
    assert db.value(READ) <= 6 * COUNT


async def test_task_writes_seven_index_entries(
    app: Horsies, database_url: str, server: cluster.Server, db: Database
) -> None:
    superuser_url = changed(server.url, database=urlsplit(database_url).path[1:])
    with psycopg.connect(superuser_url, autocommit=True) as seeing:
        if seeing.info.server_version < 160_000 or not _may_read_wal(seeing):
            pytest.skip("needs pg_walinspect of PostgreSQL 16 and a superuser")
        # Other tests make checkpoints, which remove what has been read too late.
        slot = f"costs_{seeing.info.backend_pid}"
        seeing.execute("select pg_create_physical_replication_slot(%s, true)", [slot])
        position = "select pg_current_wal_insert_lsn()::text"
        start = seeing.execute(position).fetchone()
        good(app.tasks["noop"].send_many((n,) for n in range(COUNT)))
        await work_off(app, db, COUNT)
        end = seeing.execute(position).fetchone()
        seeing.execute("checkpoint")  # the log can be read as far as it is on disk
        assert start is not None
        assert end is not None

        entries = seeing.execute(ENTRIES.encode(), [start[0], end[0]]).fetchone()
        seeing.execute("select pg_drop_replication_slot(%s)", [slot])

    # Sent: key, claim index. Started: key, in-flight index. Ended: key, ended index.
    # The attempt: key, task and attempt, end.
    assert entries is not None
    assert 7 * COUNT <= entries[0] <= 7.05 * COUNT


def _may_read_wal(connection: psycopg.Connection[Any]) -> bool:
    try:
        connection.execute("create extension if not exists pg_walinspect")
    except psycopg.Error:
        return False
    return True


async def test_bulk_is_told_of_once_each_end_by_name(app: Horsies, db: Database) -> None:
    told: Counter[str] = Counter()
    ended: list[str] = []

    def hear(notify: psycopg.Notify) -> None:
        told.update([notify.channel])
        if notify.channel == "task_done":
            ended.extend(notify.payload.split(","))

    db.connection.add_notify_handler(hear)
    for channel in CHANNELS:
        db.execute(f"listen {channel}")

    good(app.tasks["noop"].send_many((n,) for n in range(100)))
    await work_off(app, db, 100)
    eventually(lambda: db.execute("select 1") and len(ended) >= 100)

    assert len(set(ended)) == len(ended) == 100
    assert told.total() <= 6 * 100
    assert told["task_new"] == 1


async def test_send_is_one_statement(app: Horsies, traffic: Traffic) -> None:
    for number in range(PREPARED_AFTER):
        good(app.tasks["noop"].send(number))
    traffic.clear()

    for number in range(10):
        good(app.tasks["noop"].send(number))

    eventually(lambda: traffic.transactions == 10)
    assert traffic.statements.total() == traffic.round_trips == 10


async def test_concurrent_sends_share_statements(app: Horsies, traffic: Traffic) -> None:
    good(await app.tasks["noop"].send_async(0))
    traffic.clear()

    async with asyncio.TaskGroup() as group:
        sends = [group.create_task(app.tasks["noop"].send_async(n)) for n in range(200)]

    assert all(good(send.result()).task_id for send in sends)
    # The first may go alone; the others gather while it is under way.
    assert traffic.statements.total() <= 3
    assert traffic.round_trips <= 3


@pytest.mark.parametrize(("count", "statements"), [(1, 1), (50, 1), (51, 3), (10_000, 3)])
async def test_bulk_send_is_one_transaction(
    app: Horsies, traffic: Traffic, count: int, statements: int
) -> None:
    good(app.tasks["noop"].send(0))
    traffic.clear()

    good(app.tasks["noop"].send_many((n,) for n in range(count)))

    eventually(lambda: traffic.transactions == 1)
    assert traffic.round_trips <= statements
    assert traffic.statements.total() <= statements


async def test_transactional_send_adds_one_round_trip(app: Horsies, traffic: Any) -> None:
    with psycopg.connect(traffic.url) as connection:
        sender = app.tasks["noop"].with_options(connection=connection)
        for number in range(PREPARED_AFTER):
            good(sender.send(number))
        connection.commit()
        traffic.clear()

        connection.execute("select 1")  # begins the user's transaction
        for number in range(5):
            good(sender.send(number))
        connection.commit()

    eventually(lambda: traffic.transactions == 1)
    # begin, select, five sends, commit; each send's savepoint travels with its own statement.
    assert traffic.round_trips == 8
    assert traffic.statements.total() == 8 + 5 * 2


async def test_reading_an_ended_task_is_one_statement(
    app: Horsies, traffic: Traffic, db: Database
) -> None:
    task_id = good(await app.tasks["noop"].send_async(7)).task_id
    await work_off(app, db, 1)
    traffic.clear()

    result = await app.get_broker().get_result_async(task_id, 0)

    assert result.ok_value == 7
    assert traffic.statements.total() == traffic.round_trips == 1


async def test_many_waiters_share_few_connections(app: Horsies, db: Database) -> None:
    handles = good(app.tasks["noop"].send_many((n,) for n in range(1_000)))

    async def names() -> list[str]:
        rows = db.execute(
            "select application_name as name from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
        return [row["name"] for row in rows]

    async def someone_listens() -> bool:
        return "horsies listener" in await names()

    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(handle.get_async(60_000)) for handle in handles]
        await eventually_async(someone_listens)
        # One that sent in bulk, one that listens, one that reads what is awaited.
        assert len(await names()) <= 3
        async with working(app, concurrency=1_000):
            results = [await wait for wait in waits]

    assert sorted(result.ok_value for result in results) == list(range(1_000))
