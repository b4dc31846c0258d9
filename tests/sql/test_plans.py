"""Hot statements on a filled table: by index, reading about as many rows as they change."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from horsies.operations.counting import totals
from horsies.operations.filter_words import parse_filter
from horsies.operations.reading import queue_backlogs, recent_ends
from horsies.operations.statements import (
    Search,
    cancel_tasks,
    find_ids,
    request_cancel,
    requeue_tasks,
)
from horsies.recovery.statements import (
    expire_tasks,
    lost_runs,
    requeue_stale_claims,
    return_unheld_tasks,
)
from horsies.results.statements import read_results
from horsies.sending.statements import enqueue_tasks
from horsies.worker.claim_request import Counts, LaneRequest, Mark
from horsies.worker.held_task import Completion, HeldTask
from horsies.worker.statements import (
    cancel_running_tasks,
    fail_tasks,
    interrupt_tasks,
    next_due,
)
from support import cluster
from support.database import FAILURE, Database, at, new_task
from support.plans import explained
from support.urls import changed

FILL = """
insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, enqueued_at, status, claimed_by_worker_id,
    claimed_at, started_at, completed_at, claimed, claim_expires_at)
select to_char(n, 'FM00000000'), 'job', 'default', 'x', timestamptz '2030-01-01 12:00+00' - n * interval '1 ms',
    s.status,
    case when s.status <> 'PENDING' then 'worker-z' end,
    case when s.status <> 'PENDING' then timestamptz '2030-01-01 12:00+00' end,
    case when s.status in ('RUNNING', 'COMPLETED') then timestamptz '2030-01-01 12:00+00' end,
    case when s.status = 'COMPLETED' then timestamptz '2030-01-01 12:00+00' end,
    s.status = 'CLAIMED',
    case when s.status = 'CLAIMED' then timestamptz '2030-01-01 13:00+00' end
from generate_series(1, 50000) n,
    lateral (select (array['PENDING', 'PENDING', 'COMPLETED', 'COMPLETED', 'RUNNING', 'COMPLETED', 'COMPLETED',
        'COMPLETED', 'COMPLETED', 'CLAIMED'])[n % 10 + 1] as status) s
"""  # noqa: E501


COUNT_BLOCKS_READ = """
select pg_stat_get_xact_blocks_fetched('horsies_tasks_in_flight_idx'::regclass)
    + pg_stat_get_xact_blocks_fetched('horsies_tasks'::regclass)
"""
TOAST_BLOCKS_READ = """
select pg_stat_get_xact_blocks_fetched(reltoastrelid) from pg_class
where oid = 'horsies_tasks'::regclass
"""


@pytest.fixture(scope="module", params=["statistics of an empty table", "fresh statistics"])
def filled_url(
    request: pytest.FixtureRequest, server: cluster.Server, migrated_template: str
) -> Iterator[str]:
    with server.temporary_database(template=migrated_template) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("alter table horsies_tasks disable trigger user")
            connection.execute("alter table horsies_tasks set (autovacuum_enabled = false)")
            connection.execute("analyze horsies_tasks")
            connection.execute(FILL)
            connection.execute("alter table horsies_tasks enable trigger user")
            if request.param == "fresh statistics":
                connection.execute("analyze horsies_tasks")
        yield url


@pytest.fixture
def db(filled_url: str) -> Iterator[Database]:
    with psycopg.connect(filled_url) as connection:
        database = Database(connection)
        database.set_now(0)
        yield database
        connection.rollback()


def rows_read(db: Database) -> int:
    """Rows of the task table read by index in this transaction; reading it all is a failure."""
    (read,) = db.execute(
        "select coalesce(seq_scan, 0) as seq_scan, coalesce(idx_tup_fetch, 0) as by_index "
        "from pg_stat_xact_user_tables where relname = 'horsies_tasks'"
    )
    assert read["seq_scan"] == 0, "the whole table was read"
    return int(read["by_index"])


@pytest.mark.seed("S110")
def test_claim_reads_about_what_it_takes(db: Database) -> None:
    claims = db.claim(100)

    assert len(claims) == 100
    assert 100 <= rows_read(db) < 1_000


def test_claim_from_marks_reads_about_what_it_takes(db: Database) -> None:
    marks = {("default", 100, 1): Mark(at(-25), "x")}

    claims = db.claim(100, is_full_scan=False, marks=marks)

    assert len(claims) == 100
    assert 100 <= rows_read(db) < 1_000


@pytest.mark.parametrize("lane", [1, 2], ids=["of its own", "of others, searched bit by bit"])
def test_claim_walks_a_small_part_of_a_deep_backlog(committing: Database, lane: int) -> None:
    committing.execute(
        "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, enqueued_at) "
        "select lpad(n::text, 36, '0'), 'other', 'default', '', %s - n * interval '1 ms' "
        "from generate_series(1, 100000) n",
        at(-1),
    )
    committing.execute("analyze horsies_tasks")

    with committing.connection.transaction():
        blocks_before = claim_index_blocks_read(committing)
        tasks = committing.claim(
            lanes=[
                LaneRequest(100 if lane == 1 else 0, except_names=["a"]),
                LaneRequest(100 if lane == 2 else 0, is_sparse=True, only_names=["a"]),
            ],
            is_full_scan=False,
            marks={("default", 100, lane): Mark(at(-90), "x")},
        )
        blocks = claim_index_blocks_read(committing) - blocks_before

    assert len(tasks) == (100 if lane == 1 else 0)
    assert 0 < blocks < 100, "of more than a thousand"


def test_claim_does_not_read_the_large_arguments_it_leaves(committing: Database) -> None:
    committing.execute("alter table horsies_tasks alter args set storage external")
    for _ in range(50):
        committing.insert(args="x" * 1_000_000)

    with committing.connection.transaction():
        blocks_before = committing.value(TOAST_BLOCKS_READ)
        tasks = committing.claim(50, byte_limit=2_000_000)
        blocks = committing.value(TOAST_BLOCKS_READ) - blocks_before

    assert len(tasks) == 2
    assert 200 < blocks < 4 * 200, "about 125 blocks per task, of fifty that were found"


@pytest.mark.parametrize("cluster_cap", [None, 5], ids=["of a queue", "of the cluster"])
def test_count_under_a_cap_walks_no_ended_tasks_beside_an_old_snapshot(
    committing: Database, database_url: str, cluster_cap: int | None
) -> None:
    for _ in range(3):
        committing.insert(enqueued_at=at(-20))
    caps = {"queues": {"default": None if cluster_cap else 5}, "cluster_cap": cluster_cap}
    committing.claim(1, **caps)  # a long one, older than all that will have ended
    with psycopg.connect(database_url, autocommit=True) as reporting, reporting.transaction():
        reporting.execute("set transaction isolation level repeatable read")
        reporting.execute("select count(*) from horsies_tasks")
        committing.execute(
            "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, status, claimed_at)"
            " select lpad(n::text, 36, '0'), 'job', 'default', '', 'RUNNING',"
            " %s + n * interval '1 us' from generate_series(1, 20000) n",
            at(1),
        )
        committing.execute(
            "update horsies_tasks set status = 'COMPLETED' where claimed_at > %s", at(1)
        )
        committing.set_now(2)
        rows = committing.claim_pass(lanes=[LaneRequest(1)], **caps)
        (counts,) = [row.text for row in rows if isinstance(row, Counts)]
        committing.set_now(3)

        with committing.connection.transaction():
            before = committing.value(COUNT_BLOCKS_READ)
            rows = committing.claim_pass(
                lanes=[LaneRequest(1)], is_full_scan=False, counts=counts, **caps
            )
            blocks = committing.value(COUNT_BLOCKS_READ) - before

    assert len([row for row in rows if isinstance(row, HeldTask)]) == 1
    assert 0 < blocks < 100, "of more than four hundred"


def claim_index_blocks_read(db: Database) -> int:
    """Blocks that the open transaction has read, wherever they were."""
    return int(
        db.value("select pg_stat_get_xact_blocks_fetched('horsies_tasks_claim_idx'::regclass)")
    )


def test_ends_are_found_by_primary_key_among_many_in_flight(db: Database) -> None:
    claims = db.claim(200)
    before = rows_read(db)

    assert db.complete(*claims[:100]) == []
    after_complete = rows_read(db)
    for claim in claims[100:110]:
        db.fail(claim)
    after_fail = rows_read(db)

    assert after_complete - before < 1_000
    assert after_fail - after_complete < 200


def test_start_and_return_are_found_by_primary_key(db: Database) -> None:
    claims = db.claim(0, waiting=100)
    before = rows_read(db)

    db.start(*claims[:50])
    db.give_back(*claims[50:])

    assert rows_read(db) - before < 1_000


def test_user_calls_are_found_by_primary_key(db: Database) -> None:
    db.run(enqueue_tasks([new_task(f"new-{n}") for n in range(100)]))
    db.run(cancel_tasks(["new-1"]))
    db.run(read_results(["new-1", "00000001"]))

    assert rows_read(db) < 500


@pytest.mark.seed("S110")
def test_maintenance_that_finds_nothing_reads_only_what_is_in_flight(db: Database) -> None:
    db.run(expire_tasks())
    assert rows_read(db) < 10

    db.run(next_due(["default"]))
    assert rows_read(db) < 100

    db.run(lost_runs(timedelta(hours=1)))
    db.run(requeue_stale_claims(timedelta(hours=1), []))
    db.run(return_unheld_tasks("worker-a", []))
    assert rows_read(db) <= 100 + 4 * 10_000


LISTS = [
    ("", 21),
    ("status:pending", 21),
    ("status:failed", 0),
    ("task:none", 0),
    ("kwargs.order=42", 0),
]


@pytest.mark.parametrize(("words", "found"), LISTS, ids=[words or "all" for words, _ in LISTS])
def test_a_page_of_tasks_reads_a_bounded_number_of_rows(
    db: Database, words: str, found: int
) -> None:
    search = Search(parse_filter(words), 21, examine_limit=1_000)

    rows = db.run(find_ids(search))

    assert sum(row.is_match for row in rows) == found
    assert rows_read(db) <= (200 if found else 1_100), "of 50,000, each once"


def test_arguments_are_read_only_where_they_may_fit(db: Database) -> None:
    db.execute(
        "create or replace function horsies_has_arguments(args text, kwargs text, expected jsonb)"
        " returns boolean language plpgsql as 'begin raise exception ''it was read''; end'"
    )

    rows = db.run(find_ids(Search(parse_filter("kwargs.order=42"), 21, examine_limit=1_000)))

    assert [row.is_match for row in rows] == [False]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("status:completed", 21),
        ("status:ended", 21),
        ("status:running", 21),
        ("worker:nowhere status:ended", 0),
        ("worker:nowhere status:running", 0),
    ],
)
def test_lists_by_time_read_a_bounded_number_of_rows(db: Database, words: str, found: int) -> None:
    db.execute(
        "insert into horsies_tasks"
        " (id, task_name, queue_name, enqueue_sha, status, claimed_at, completed_at)"
        " select 't' || n, 'job', 'web', '',"
        " case n %% 2 when 0 then 'COMPLETED' else 'RUNNING' end,"
        " %s + n * interval '1 ms', case n %% 2 when 0 then %s + n * interval '1 ms' end"
        " from generate_series(1, 5000) n",
        at(1),
        at(1),
    )
    before = rows_read(db)

    rows = db.run(find_ids(Search(parse_filter(words), 21, examine_limit=500)))

    assert sum(row.is_match for row in rows) == found
    assert rows_read(db) - before <= (3 * found if found else 550)


def test_what_waits_is_counted_up_to_a_limit(db: Database) -> None:
    (backlog,) = db.run(queue_backlogs(101))

    assert (backlog.due_count, backlog.later_count) == (101, 0)
    assert rows_read(db) < 500


def test_recent_ends_are_read_up_to_a_limit(db: Database) -> None:
    (ends,) = db.run(recent_ends("queue", timedelta(days=1), 100))

    assert ends.completed_count == 100
    assert rows_read(db) < 500


BATCH = 500
Act = Callable[[Database, list[HeldTask]], object]


def fail_all(db: Database, claims: list[HeldTask]) -> object:
    ends = [
        Completion(claim, FAILURE, "fail", attempt_outcome="FAILED", error_code="BROKEN")
        for claim in claims
    ]
    return db.run(fail_tasks("worker-a", ends))


def ends(claims: list[HeldTask]) -> list[Completion]:
    return [Completion(claim, "") for claim in claims]


RUNS: dict[str, Act] = {
    "complete": lambda db, claims: db.complete(*claims),
    "fail": fail_all,
    "cancel a run": lambda db, claims: db.run(cancel_running_tasks("worker-a", ends(claims))),
    "interrupt": lambda db, claims: db.run(interrupt_tasks("worker-a", ends(claims))),
    "requeue": lambda db, claims: db.run(
        requeue_tasks([one.task_id for one in claims], include_completed=False)
    ),
}
CLAIMS: dict[str, Act] = {
    "start": lambda db, claims: db.start(*claims),
    "return": lambda db, claims: db.give_back(*claims),
    "cancel": lambda db, claims: db.run(request_cancel([one.task_id for one in claims])),
}


@pytest.mark.parametrize("name", [*RUNS, *CLAIMS])
def test_no_step_of_a_batch_handles_batch_times_batch_rows(
    filled_url: str, server: cluster.Server, name: str
) -> None:
    """The closing joins as well: 500 * 500 rows take a tenth of a second."""
    database = str(conninfo_to_dict(filled_url)["dbname"])
    with psycopg.connect(changed(server.url, database=database)) as connection:
        db = Database(connection)
        db.set_now(0)
        claims = db.claim(BATCH) if name in RUNS else db.claim(0, waiting=BATCH)
        if name == "requeue":
            db.execute("update horsies_tasks set status = 'FAILED' where status = 'RUNNING'")
        with explained(connection) as handled:
            (RUNS | CLAIMS)[name](db, sorted(claims, key=lambda claim: claim.task_id))
        connection.rollback()

    assert any("horsies_tasks" in query for query in handled.rows)
    assert {query: rows for query, rows in handled.rows.items() if rows > 4 * BATCH} == {}


@pytest.mark.parametrize("name", ["claim", *RUNS, *CLAIMS])
def test_plans_made_on_an_empty_table_serve_a_full_one(
    server: cluster.Server, migrated_template: str, name: str
) -> None:
    """They stay in a session until the next analyze: whatever waited would be walked by each."""
    act = (RUNS | CLAIMS).get(name)
    with server.temporary_database(template=migrated_template) as url:
        database = str(conninfo_to_dict(url)["dbname"])
        with psycopg.connect(changed(server.url, database=database)) as connection:
            db = Database(connection)
            db.set_now(0)
            db.execute("alter table horsies_tasks disable trigger user")
            db.execute("alter table horsies_tasks set (autovacuum_enabled = false)")
            db.execute("analyze horsies_tasks")
            count = {"count": 0, "waiting": BATCH} if name in CLAIMS else {"count": BATCH}
            for _ in range(2):
                db.insert()
                claims = db.claim(**count, is_full_scan=False)
                if act:
                    act(db, claims)
                db.execute("delete from horsies_tasks")
            db.execute(FILL)
            with explained(connection) as handled:
                claims = db.claim(**count, is_full_scan=False)
                if act:
                    act(db, sorted(claims, key=lambda claim: claim.task_id))
            connection.rollback()

    assert len(claims) == BATCH
    assert {query: rows for query, rows in handled.rows.items() if rows > 6 * BATCH} == {}


def test_totals_read_no_more_than_they_count(db: Database) -> None:
    counts = {row.status: row.number for row in db.run(totals()) if row.kind == "task"}

    assert (counts["PENDING"], counts["COMPLETED"]) == (10_000, 10_001)
    assert rows_read(db) <= 4 * 10_001
