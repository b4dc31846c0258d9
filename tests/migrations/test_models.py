"""The SQLAlchemy mirror makes the same tables as the migrations, as the catalog tells them."""

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, insert, select, update

from horsies import PostgresBroker, PostgresConfig
from horsies.core.models.task_pg import (
    Base,
    TaskAttemptModel,
    TaskModel,
    WorkflowModel,
    WorkflowTaskModel,
)
from horsies.states import TaskAttemptOutcome, TaskStatus, WorkflowStatus, WorkflowTaskStatus

COLUMNS = """
    select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
        pg_get_expr(d.adbin, d.adrelid), o.collname
    from pg_attribute a
    join pg_class c on c.oid = a.attrelid and c.relkind = 'r'
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    left join pg_collation o on o.oid = a.attcollation
    where c.relnamespace = 'public'::regnamespace and a.attnum > 0
    order by c.relname, a.attnum
"""
CONSTRAINTS = """
    select conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2
"""
INDEXES = """
    select tablename, indexname, indexdef from pg_indexes where schemaname = 'public' order by 1, 2
"""
SETTINGS = """
    select relname, reloptions from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1
"""
TRIGGERS = """
    select tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) from pg_trigger
    where not tgisinternal order by 1, 2
"""


@pytest.fixture
def mirrored_url(empty_database_url: str) -> str:
    engine = create_engine(empty_database_url.replace("postgresql:", "postgresql+psycopg:"))
    Base.metadata.create_all(engine)
    engine.dispose()
    return empty_database_url


@pytest.mark.seed("S157")
@pytest.mark.parametrize(
    "catalog",
    [COLUMNS, CONSTRAINTS, INDEXES, SETTINGS],
    ids=["columns", "constraints", "indexes", "settings"],
)
def test_mirror_equals_the_migrations(catalog: str, database_url: str, mirrored_url: str) -> None:
    with psycopg.connect(database_url) as migrated, psycopg.connect(mirrored_url) as mirrored:
        expected = migrated.execute(catalog).fetchall()
        found = mirrored.execute(catalog).fetchall()

    assert expected
    assert found == expected


@pytest.mark.seed("S157")
def test_mirrored_tables_become_a_working_database(database_url: str, mirrored_url: str) -> None:
    broker = PostgresBroker(PostgresConfig(database_url=mirrored_url))
    broker.enqueue("any", task_id="t-1", enqueue_sha="x").unwrap()
    broker.close()

    with psycopg.connect(database_url) as migrated, psycopg.connect(mirrored_url) as mirrored:
        for catalog in (COLUMNS, CONSTRAINTS, INDEXES, SETTINGS, TRIGGERS):
            expected = migrated.execute(catalog).fetchall()
            assert expected
            assert mirrored.execute(catalog).fetchall() == expected


def test_a_stored_task_is_read_through_the_model(database_url: str) -> None:
    from sqlalchemy.orm import Session

    broker = PostgresBroker(PostgresConfig(database_url=database_url))
    broker.enqueue("any", task_id="t-1", enqueue_sha="x").unwrap()
    broker.close()

    engine = create_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))
    with Session(engine) as session:
        task = session.get_one(TaskModel, "t-1")
        waiting = session.query(TaskModel).filter(TaskModel.status == TaskStatus.PENDING).count()
        by_text = session.query(TaskModel).filter(TaskModel.status.in_(["PENDING"])).count()
    engine.dispose()

    assert (task.task_name, task.status, task.priority) == ("any", TaskStatus.PENDING, 100)
    assert (waiting, by_text) == (1, 1)


AT = datetime(2030, 1, 1, tzinfo=UTC)
TASK = {"id": "t", "task_name": "job", "queue_name": "q", "sent_at": AT, "enqueue_sha": "x"}


@pytest.mark.parametrize(
    ("attribute", "row", "members"),
    [
        (TaskModel.status, TASK, TaskStatus),
        (
            TaskAttemptModel.outcome,
            {"task_id": "t", "attempt": 1, "started_at": AT, "finished_at": AT},
            TaskAttemptOutcome,
        ),
        (WorkflowModel.status, {"id": "w", "name": "flow"}, WorkflowStatus),
        (
            WorkflowTaskModel.status,
            {"id": "n", "workflow_id": "of the node", "task_index": 0, "task_name": "job"},
            WorkflowTaskStatus,
        ),
    ],
    ids=["task", "attempt", "workflow", "node"],
)
def test_every_status_is_read_compared_and_queried_as_a_member(
    attribute: Any, row: dict[str, Any], members: Any, database_url: str
) -> None:
    engine = create_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))
    one = attribute.class_
    mine = [one.__table__.c[name] == value for name, value in row.items() if "id" in name]

    with engine.begin() as connection:
        connection.execute(insert(WorkflowModel).values(id="of the node", name="flow"))
        connection.execute(insert(one).values({**row, attribute.key: next(iter(members))}))
        for member in members:
            connection.execute(update(one).where(*mine).values({attribute.key: member}))
            read = select(attribute).where(*mine)
            assert connection.scalar(read) is member
            assert connection.scalar(read.where(attribute == member)) is member
            assert connection.scalar(read.where(attribute.in_([member.value]))) is member
            assert connection.scalar(read.where(attribute != member)) is None
    engine.dispose()


async def test_session_factory_gives_transactions_on_the_same_database(database_url: str) -> None:
    broker = PostgresBroker(PostgresConfig(database_url=database_url))
    (await broker.enqueue_async("any", task_id="t-1", enqueue_sha="x")).unwrap()

    async with broker.session_factory() as session:
        (await session.get_one(TaskModel, "t-1")).priority = 7
        await session.flush()
        await session.rollback()
        after = await session.scalar(select(TaskModel.priority))
    await broker.close_async()

    assert after == 100


async def test_session_factory_works_in_the_configured_schema(empty_database_url: str) -> None:
    config = PostgresConfig(database_url=empty_database_url, schema="our jobs")
    broker = PostgresBroker(config)
    (await broker.enqueue_async("any", task_id="t-1", enqueue_sha="x")).unwrap()

    async with broker.session_factory() as session:
        found = await session.get(TaskModel, "t-1")
    await broker.close_async()

    assert found is not None


def test_the_package_works_without_sqlalchemy() -> None:
    """A `None` in `sys.modules` makes an import fail as if the library were not installed."""
    program = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "import horsies, horsies.cli.worker, horsies.worker.startup\n"
        "broker = horsies.PostgresBroker(horsies.PostgresConfig(database_url='postgresql://h/d'))\n"
        "try: broker.session_factory\n"
        "except horsies.ConfigurationError as error: print(error.help_text)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )

    assert "horsies[sqlalchemy]" in done.stdout, done.stderr
