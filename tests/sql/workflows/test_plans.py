"""Hot statements of workflows among 100,000 waiting nodes: by index, reading what they change."""

import time
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from horsies.recovery.statements import recover_workflows
from horsies.workflows import statements
from support import cluster
from support.database import OK, Database
from support.faults import IS_SHORT
from support.plans import explained
from support.urls import changed
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow

TABLES = ("horsies_workflows", "horsies_workflow_tasks", "horsies_tasks", "horsies_events")
FILL = """
insert into horsies_workflows (id, name, status, root_workflow_id, open_nodes)
select 'w' || n, 'flow', case when n % 2 = 0 then 'RUNNING' else 'PAUSED' end, 'w' || n, 100
from generate_series(1, 1000) n;
insert into horsies_workflow_tasks (id, workflow_id, task_index, node_id, task_name, task_kwargs, dependencies, open_dependencies,
    status, task_id)
select 'w' || w || '-' || i, 'w' || w, i, 'n' || i, 'job', '{}', case when i = 0 then '{}'::integer[] else array[i - 1] end,
    case when i = 0 then 0 else 1 end, case when i = 0 then 'ENQUEUED' else 'PENDING' end, case when i = 0 then 'w' || w || '-0' end
from generate_series(1, 1000) w, generate_series(0, 99) i;
insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, enqueued_at, is_workflow_task, is_held)
select 'w' || w || '-0', 'job', 'held', 'x', timestamptz '2030-01-01 11:00+00', true, true from generate_series(1, 1000) w
"""  # noqa: E501


# Filling takes seconds: `make test` takes the statistics with which plans go wrong sooner.
STATISTICS = ["statistics of empty tables", "fresh statistics"][: 1 if IS_SHORT else 2]


@pytest.fixture(scope="module", params=STATISTICS)
def filled_url(
    request: pytest.FixtureRequest, server: cluster.Server, migrated_template: str
) -> Iterator[str]:
    with server.temporary_database(template=migrated_template) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            for table in TABLES:
                connection.execute(f"alter table {table} set (autovacuum_enabled = false)".encode())
                connection.execute(f"analyze {table}".encode())
            connection.execute("alter table horsies_tasks disable trigger user")
            connection.execute("alter table horsies_workflows disable trigger user")
            connection.execute(FILL)
            connection.execute("alter table horsies_tasks enable trigger user")
            connection.execute("alter table horsies_workflows enable trigger user")
            if request.param == "fresh statistics":
                for table in TABLES:
                    connection.execute(f"analyze {table}".encode())
        yield url


@pytest.fixture
def db(filled_url: str) -> Iterator[Database]:
    with psycopg.connect(filled_url) as connection:
        database = Database(connection)
        database.set_now(0)
        yield database
        connection.rollback()


def rows_read(db: Database) -> int:
    """Rows of workflows, nodes and tasks read by index in this transaction; none by reading all."""
    found = db.execute(
        "select relname, coalesce(seq_tup_read, 0) as all_read, coalesce(idx_tup_fetch, 0) as n "
        "from pg_stat_xact_user_tables where relname = any (%s)",
        list(TABLES),
    )
    assert {row["relname"]: row["all_read"] for row in found if row["all_read"] > 10} == {}
    return sum(row["n"] for row in found)


def test_plain_claim_does_not_see_waiting_nodes(db: Database) -> None:
    plain = db.insert()

    claims = db.claim(10, queues={"default": None, "held": None})

    assert [task.task_id for task in claims] == [plain]
    assert rows_read(db) < 50


def test_end_of_a_task_reads_its_own_workflow(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)), N((1,)))
    before = rows_read(db)
    task_id = flow.nodes[0]["task_id"]

    db.run(statements.lock_workflows_of_tasks([task_id]))
    db.execute(
        "update horsies_tasks set status = 'COMPLETED', "
        "result = '{\"__task_result__\":true,\"ok\":1,\"err\":null}' where id = %s", task_id
    )  # fmt: skip
    db.run(statements.advance_tasks([task_id]))

    assert rows_read(db) - before < 150


def test_no_step_of_many_ends_handles_ends_times_ends_rows(
    server: cluster.Server, migrated_template: str
) -> None:
    """Also with plans that were made for a small workflow in tables that were empty."""
    width = 500
    with (
        server.temporary_database(template=migrated_template) as url,
        psycopg.connect(
            changed(server.url, database=str(conninfo_to_dict(url)["dbname"]))
        ) as connection,
    ):
        db = Database(connection)
        db.set_now(0)
        for table in TABLES:
            db.execute(f"analyze {table}")
        end_first_and_wide(db, 2)
        with explained(connection) as handled:
            states = end_first_and_wide(db, width)

    assert states == ["COMPLETED"] * (width + 1) + ["ENQUEUED"]
    assert any("horsies_workflow_tasks" in query for query in handled.rows)
    assert {query: rows for query, rows in handled.rows.items() if rows > 4 * width} == {}


def end_first_and_wide(db: Database, width: int) -> list[str]:
    """End the first node of a fan-out, then all behind it at once."""
    flow = Flow.start(db, N(), *[N((0,))] * width, N(tuple(range(1, width + 1))))
    for nodes in (flow.nodes[:1], flow.nodes[1:-1]):
        task_ids = [node["id"] for node in nodes]
        for task_id in task_ids:
            change = "update horsies_tasks set status = 'COMPLETED', result = %s where id = %s"
            db.execute(change, OK, task_id)
        db.run(statements.advance_tasks(task_ids))
    return flow.states


def test_steering_reads_its_own_workflow(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)))
    before = rows_read(db)

    flow.pause()
    flow.resume()
    flow.cancel()

    assert rows_read(db) - before < 300


def test_looks_for_waits_and_children_read_what_they_find(db: Database) -> None:
    before = rows_read(db)

    db.run(statements.wake_nodes(100))
    db.run(statements.claim_subworkflows(["known"], timedelta(seconds=30), 100))

    assert rows_read(db) - before < 50


def test_recovery_reads_a_bounded_number_of_nodes(db: Database) -> None:
    started = time.monotonic()

    (answer,) = db.run(recover_workflows(""))

    assert (answer.recovered, answer.failure) == (0, None)
    assert answer.looked_to is not None
    assert rows_read(db) < 25_000  # of 50,000 in running workflows
    assert time.monotonic() - started < 1.5  # a tenth on an idle machine


def test_one_look_of_recovery_ends_after_many_nodes(db: Database) -> None:
    (look,) = db.execute("select * from horsies_stuck_workflows('', 1000)")

    seen = "select count(*) from horsies_workflows where status = 'RUNNING' and id <= %s"
    assert db.value(seen, look["looked_to"]) == 200  # 20,000 nodes
    assert look["stuck"] == []


def test_recovery_of_one_workflow_reads_that_one(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)), id="zz")
    db.execute("update horsies_tasks set status = 'FAILED' where id = %s", flow.nodes[0]["task_id"])
    before = rows_read(db)

    (answer,) = db.run(recover_workflows("z"))

    assert (answer.recovered, answer.failure) == (1, None)
    assert flow.status == "FAILED"
    assert rows_read(db) - before < 300


def test_recovery_finds_a_cancelled_workflow_among_many(db: Database) -> None:
    flow = Flow.start(db, N(), id="zz")
    change = "update horsies_tasks set status = %s where id = %s"
    db.execute(change, "RUNNING", flow.nodes[0]["task_id"])
    flow.cancel()
    db.execute(
        "insert into horsies_workflows (id, name, status, completed_at) "
        "select 'za' || n, 'flow', 'CANCELLED', now() from generate_series(1, 2000) n"
    )
    db.execute(change, "FAILED", flow.nodes[0]["task_id"])
    before = rows_read(db)

    (answer,) = db.run(recover_workflows("z"))

    assert (answer.recovered, answer.failure) == (1, None)
    assert flow.states == ["FAILED"]
    assert rows_read(db) - before < 300


def test_recovery_of_a_wide_workflow_costs_about_its_nodes(db: Database) -> None:
    width = 5_000
    middle = [N((0,)) for _ in range(width)]
    flow = Flow.start(db, N(), *middle, N(tuple(range(1, width + 1))), id="zz")
    sql = "update horsies_tasks set status = 'COMPLETED', result = %s where id = %s"
    db.execute(sql, OK, flow.nodes[0]["task_id"])
    before, started = rows_read(db), time.monotonic()

    (answer,) = db.run(recover_workflows("z"))

    assert (answer.recovered, answer.failure) == (1, None)
    assert flow.states[1:3] == ["ENQUEUED", "ENQUEUED"]
    assert rows_read(db) - before < 40 * width
    assert time.monotonic() - started < 10  # a second on an idle machine
