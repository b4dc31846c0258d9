"""Failures that are alike are one group, whatever numbers their messages and tracebacks have."""

from datetime import timedelta

from horsies import Note
from support.apps import good, make_app
from support.database import Database

FAILED = """
insert into horsies_tasks (id, task_name, queue_name, status, sent_at, enqueued_at, failed_at,
    error_code, result, enqueue_sha)
select format('00000000-0000-7000-8000-%%s', lpad(n::text, 12, '0')), %(task)s, 'default', 'FAILED',
    now(), now(), now() - n * interval '1 minute', %(code)s,
    json_build_object('err', json_build_object('error_code', %(code)s::text,
        'message', 'order ' || n,
        'exception', json_build_object('traceback', replace(%(traceback)s, 'N', n::text))))::text,
    'x'
from generate_series(%(first)s::integer, %(last)s::integer) n
"""


def fail(
    db: Database, task: str, numbers: tuple[int, int], code: str = "BAD", traceback: str = "line N"
) -> None:
    first, last = numbers
    values = {"task": task, "code": code, "traceback": traceback, "first": first, "last": last}
    db.connection.execute(FAILED, values)


def test_groups_by_task_code_and_traceback_without_numbers(db: Database, database_url: str) -> None:
    fail(db, "a", (1, 3), traceback="line N at 0xN in f")
    fail(db, "a", (4, 5), traceback="line N in other")
    fail(db, "a", (6, 6), code="WORSE", traceback="line N at 0xN in f")
    fail(db, "b", (7, 7), traceback="line N at 0xN in f")
    fail(db, "b", (90, 90))
    app = make_app(database_url)

    groups = good(app.operations.failures(window=timedelta(hours=1)))

    assert [(g.task_name, g.error_code, g.number) for g in groups] == [
        ("a", "BAD", 3), ("a", "BAD", 2), ("a", "WORSE", 1), ("b", "BAD", 1),
    ]  # fmt: skip
    latest = groups[0]
    assert (latest.message, latest.traceback) == ("order 1", "line 1 at 0x1 in f")
    assert latest.last_id.endswith("1")
    assert latest.last_at - latest.first_at == timedelta(minutes=2)
    app.get_broker().close()


async def test_a_group_goes_back_and_the_audit_says_so(db: Database, database_url: str) -> None:
    fail(db, "a", (1, 3))
    fail(db, "b", (4, 5))
    app = make_app(database_url)
    key = good(await app.operations.failures_async())[0].key

    counted = good(await app.operations.requeue_failures_async(key, dry_run=True))
    moved = good(app.operations.requeue_failures(key, note=Note(by="ann", reason="mended")))

    assert (str(counted), str(moved)) == ("3", "3")
    assert db.statuses() == {"FAILED": 2, "PENDING": 3}
    (entry,) = good(app.operations.audit())
    assert (entry.done_by, entry.action, entry.reason) == ("ann", "requeue", "mended")
    assert str(good(app.operations.requeue_failures(key))) == "0"
    app.get_broker().close()


def test_other_code_may_write_into_the_audit(database_url: str) -> None:
    app = make_app(database_url)

    good(app.operations.record("deploy", "release 7", note=Note(by="ci"), details={}))

    (entry,) = good(app.operations.audit())
    assert (entry.done_by, entry.action, entry.target) == ("ci", "deploy", "release 7")
    app.get_broker().close()
