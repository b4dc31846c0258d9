"""Tasks by filter: each condition, the order, the pages, and how far one search goes."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horsies import Horsies
from horsies.codes import BrokerErrorCode
from horsies.ids import new_id
from horsies.operations import listing, statements
from horsies.operations.filter_words import parse_filter
from horsies.operations.filters import TaskFilter, id_at
from horsies.operations.steps import perform
from support.apps import bad, good
from support.database import Database

NewApp = Callable[..., Horsies]
NOW = datetime.now(UTC)


def insert(db: Database, status: str = "PENDING", **columns: Any) -> str:
    if status in ("CLAIMED", "RUNNING"):
        columns = {"claimed_at": NOW, "claimed_by_worker_id": "host-a-1-x", **columns}
    if status == "COMPLETED":
        columns = {"completed_at": NOW, **columns}
    if status in ("FAILED", "EXPIRED"):
        columns = {"failed_at": NOW, **columns}
    return db.insert(**{"id": new_id(), "status": status, "sent_at": NOW, **columns})


def listed(app: Horsies, words: str, **paging: Any) -> list[str]:
    page = good(app.operations.tasks(parse_filter(words), **paging))
    return [task.id for task in page.tasks]


MATCHES = [
    ("status:failed", {"status": "FAILED"}, {"status": "COMPLETED"}),
    ("status:running", {"status": "RUNNING"}, {"status": "PENDING"}),
    ("status:pending,failed", {"status": "FAILED"}, {"status": "RUNNING"}),
    ("queue:mail", {"queue_name": "mail"}, {"queue_name": "default"}),
    ("task:charge_*", {"task_name": "charge_card"}, {"task_name": "chargeXcard"}),
    ("task:add", {"task_name": "add"}, {"task_name": "added"}),
    ("tag:vip", {"tags": ["new", "vip"]}, {"tags": ["new"]}),
    (
        "error:BRO*",
        {"status": "FAILED", "error_code": "BROKEN"},
        {"status": "FAILED", "error_code": "LATE"},
    ),
    (
        "worker:host-a",
        {"status": "RUNNING", "claimed_by_worker_id": "host-a-7"},
        {"status": "RUNNING", "claimed_by_worker_id": "host-b-7"},
    ),
    (
        "worker:host-a",
        {"status": "COMPLETED", "worker_hostname": "host-a"},
        {"status": "COMPLETED", "worker_hostname": "host-abc"},
    ),
    ("since:1h", {"sent_at": NOW}, {"sent_at": NOW - timedelta(hours=2)}),
    ("until:1h", {"sent_at": NOW - timedelta(hours=2)}, {"sent_at": NOW}),
    (
        "ended-since:1h",
        {"status": "FAILED"},
        {"status": "FAILED", "failed_at": NOW - timedelta(hours=2)},
    ),
    (
        "ended-until:1h",
        {"status": "COMPLETED", "completed_at": NOW - timedelta(hours=2)},
        {"status": "COMPLETED"},
    ),
    ("kwargs.order=42", {"kwargs": '{"order":42}'}, {"kwargs": '{"order":421}'}),
    ("kwargs.order.id=a", {"kwargs": '{"order":{"id":"a"}}'}, {"kwargs": '{"id":"a"}'}),
    ("kwargs.name=Zoë", {"kwargs": '{"name":"Zo\\u00eb"}'}, {"kwargs": "not JSON"}),
    ("args.1=x", {"args": '["y","x"]'}, {"args": '["x","y"]'}),
]


@pytest.mark.parametrize(("words", "fits", "differs"), MATCHES, ids=[m[0] for m in MATCHES])
async def test_a_filter_finds_what_fits_and_nothing_else(
    app: Horsies, db: Database, words: str, fits: dict[str, Any], differs: dict[str, Any]
) -> None:
    found = insert(db, **fits)
    insert(db, **differs)

    page = await app.operations.tasks_async(parse_filter(words))

    assert [task.id for task in good(page).tasks] == [found]
    assert good(app.operations.count(parse_filter(words))).number == 1


@pytest.mark.parametrize("words", ["error:BROKEN", "ended-since:1h", "ended-until:0s"])
@pytest.mark.parametrize("status", ["PENDING", "RUNNING"])
def test_states_without_error_or_end_are_not_replaced_by_others(
    app: Horsies, db: Database, status: str, words: str
) -> None:
    insert(db, status)
    insert(db, "FAILED", error_code="BROKEN")
    wanted = parse_filter(f"status:{status.lower()} {words}")

    assert good(app.operations.tasks(wanted)).tasks == []
    assert good(app.operations.count(wanted)).number == 0
    assert "delete is for tasks that are" in bad(app.operations.delete(wanted)).message


def test_pages_follow_one_another_without_gap_or_repeat(app: Horsies, db: Database) -> None:
    ids = [insert(db, "COMPLETED", completed_at=NOW - timedelta(hours=n % 3)) for n in range(10)]
    by_end = [ids[n] for n in (9, 6, 3, 0, 7, 4, 1, 8, 5, 2)]

    for words, expected in (("", ids[::-1]), ("status:completed", by_end)):
        seen: list[str] = []
        before = None
        while not seen or before is not None:
            page = good(app.operations.tasks(parse_filter(words), limit=4, before=before))
            seen += [task.id for task in page.tasks]
            before = page.next_before

        assert seen == expected


def test_ids_that_tell_no_time_stand_where_their_rows_were_made(app: Horsies, db: Database) -> None:
    """Those of schedules are made of a name and a slot."""
    now = datetime.now(UTC)
    births = [now - timedelta(minutes=n) for n in range(8)]
    ids = [
        insert(db, created_at=made, sent_at=made, id=str(uuid.uuid4()) if n % 2 else born_at(made))
        for n, made in enumerate(births)
    ]
    seen: list[str] = []
    before = None
    while not seen or before is not None:
        page = good(app.operations.tasks(limit=1, before=before))
        seen += [task.id for task in page.tasks]
        before = page.next_before

    assert seen == ids
    assert listed(app, "since:150s") == ids[:3]
    assert listed(app, "until:330s") == ids[6:]
    assert good(app.operations.find_id(ids[5][:20])) == ids[5]


def born_at(instant: datetime) -> str:
    """An id as senders make it at this time."""
    return f"{id_at(instant)}-7000-8000-000000000000"


def test_a_page_reads_little_whatever_ids_there_are(app: Horsies, db: Database) -> None:
    db.execute(
        "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, created_at) "
        "select case n %% 3 when 0 then gen_random_uuid()::text "
        "when 1 then overlay(gen_random_uuid()::text placing '0000' from 1 for 4) "
        "else %s || lpad(n::text, 17, '0') end, 'a', 'default', 'x', now() "
        "from generate_series(1, 20000) n",
        f"{id_at(NOW)}-7000-",
    )
    db.execute("analyze horsies_tasks")

    lines = db.execute(
        "explain (analyze, buffers, format json) "
        "select * from horsies_find_tasks('{}', 'made', 'infinity', 'z', 50, 10000)"
    )

    plan = lines[0]["QUERY PLAN"][0]["Plan"]
    assert plan["Actual Rows"] == 50
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 600, "the table has more"


def test_ended_states_are_merged_by_their_end(app: Horsies, db: Database) -> None:
    early = insert(db, "FAILED", failed_at=NOW - timedelta(hours=2))
    late = insert(db, "EXPIRED")
    middle = insert(db, "FAILED", failed_at=NOW - timedelta(hours=1))

    assert listed(app, "status:failed,expired") == [late, middle, early]


def test_a_search_for_rare_tasks_stops_and_goes_on(app: Horsies, db: Database) -> None:
    rare = insert(db, task_name="rare")
    ids = [insert(db) for _ in range(30)]
    database = app.get_broker().database
    search = statements.Search(TaskFilter(task_name="rare"), 5, examine_limit=10)

    rows = database.run(statements.list_tasks(search))

    assert [(row.is_match, row.id) for row in rows] == [(False, ids[-10])]
    assert listed(app, "task:rare", before=ids[-10]) == [rare]


def test_counts_stop_at_a_limit(
    app: Horsies, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(6):
        insert(db)
    monkeypatch.setattr(listing, "COUNT_LIMIT", 5)

    count = good(app.operations.count())

    assert (str(count), count.is_least) == ("5+", True)


def test_nodes_are_listed_but_never_acted_on(app: Horsies, db: Database) -> None:
    node = insert(db, is_workflow_task=True)
    database = app.get_broker().database

    ids = perform(
        database, listing.ids_steps(TaskFilter(), 10, None), BrokerErrorCode.CLEANUP_FAILED
    )

    assert listed(app, "") == [node]
    assert good(ids).ids == []


def test_the_beginning_of_an_id_is_enough(app: Horsies, db: Database) -> None:
    for task_id in ("ab-1", "ab-2", "b"):
        insert(db, id=task_id)

    assert good(app.operations.find_id("b")) == "b"
    assert good(app.operations.find_id("ab-1")) == "ab-1"
    assert "several ids:\n  ab-1\n  ab-2" in bad(app.operations.find_id("ab")).message
    assert bad(app.operations.find_id("c")).message == "there is no task c"


def test_a_cursor_of_another_list_is_refused(app: Horsies) -> None:
    answer = bad(app.operations.tasks(parse_filter("status:failed"), before="0193e1"))

    assert "'0193e1' is not where a page of these tasks ended" in answer.message
    assert answer.retryable is False
