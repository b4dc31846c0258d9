"""The doctor finds each planted fault and names a cure; a healthy database has none."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from horsies import AppConfig, Horsies, PostgresConfig
from horsies.operations import doctor
from horsies.operations.doctor import Finding
from horsies.operations.doctor_reading import (
    INDEXES,
    TRIGGERS,
    IndexHealth,
    ServerHealth,
    TableHealth,
    definition_of,
)
from horsies.version import __version__
from support.apps import bad, good
from support.database import Database
from support.scenes import snapshot


@pytest.fixture
def app(database_url: str) -> Iterator[Horsies]:
    app = Horsies(AppConfig(broker=PostgresConfig(database_url=database_url)))
    yield app
    app.get_broker().close()


def wrong(app: Horsies, patience: timedelta = timedelta(minutes=5)) -> dict[str, Finding]:
    """What is wrong, by check; what the test run's own server always has is left out."""
    findings = good(app.operations.doctor(patience=patience))
    return {finding.check: finding for finding in findings if finding.is_wrong}


def test_a_healthy_database_has_no_findings(app: Horsies) -> None:
    assert wrong(app) == {}


def test_settings_that_hurt_are_hints(app: Horsies) -> None:
    hints = [one for one in good(app.operations.doctor()) if one.check == "settings"]

    assert any("fsync is off" in hint.text for hint in hints)  # as the tests' server has it
    assert not any(hint.is_wrong for hint in hints)


def test_a_duty_that_fails(app: Horsies, db: Database) -> None:
    db.insert(
        "horsies_duties", name="prune workflows", taken_at=datetime.now(UTC), failure="no luck"
    )

    finding = wrong(app)["duty"]

    assert "could not prune workflows" in finding.text
    assert "no luck" in finding.text


def test_a_server_that_does_not_answer_is_given_up(
    app: Horsies, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_LIMIT_S", 1.0)

    with psycopg.connect(database_url) as session:
        session.execute("lock table horsies_duties in access exclusive mode")
        result = app.operations.doctor()

    assert bad(result).code.value == "MONITORING_QUERY_FAILED"


async def test_a_session_idle_in_transaction(app: Horsies, database_url: str) -> None:
    with psycopg.connect(database_url, application_name="report") as session:
        session.execute("select count(*) from horsies_tasks")
        pid = session.info.backend_pid
        findings = good(await app.operations.doctor_async(patience=timedelta()))

    (found,) = [one for one in findings if one.check == "old_snapshot" and str(pid) in one.text]
    assert f"Session {pid} (report, idle in transaction)" in found.text
    assert f"pg_terminate_backend({pid})" in found.cure


def test_a_dropped_index(app: Horsies, db: Database) -> None:
    db.execute("drop index horsies_tasks_claim_idx")

    found = wrong(app)

    assert set(found) == {"index_missing", "claim_plan"}
    assert "horsies_tasks_claim_idx is missing" in found["index_missing"].text
    db.execute(found["index_missing"].cure)
    assert wrong(app) == {}


def test_an_invalid_index(app: Horsies, db: Database) -> None:
    db.insert(task_name="a")
    db.insert(task_name="a")
    with pytest.raises(psycopg.errors.UniqueViolation):
        db.execute("create unique index concurrently horsies_own_idx on horsies_tasks (task_name)")

    found = wrong(app)["index_invalid"]

    assert "horsies_own_idx is invalid" in found.text


def test_a_missing_and_a_disabled_trigger(app: Horsies, db: Database) -> None:
    db.execute("drop trigger horsies_task_notify_trigger_insert on horsies_tasks")
    missing = wrong(app)["trigger"]
    db.execute(missing.cure)
    db.execute("alter table horsies_tasks disable trigger horsies_task_delete_trigger")
    disabled = wrong(app)["trigger"]

    assert "horsies_task_notify_trigger_insert is missing" in missing.text
    assert "horsies_task_delete_trigger is disabled" in disabled.text


def test_a_stopped_autovacuum(app: Horsies, db: Database) -> None:
    db.execute("alter table horsies_tasks set (autovacuum_enabled = false)")

    found = wrong(app)["autovacuum"]
    db.execute(found.cure)

    assert found.text == "Autovacuum is switched off for horsies_tasks."
    assert wrong(app) == {}


def test_exhausted_connections(app: Horsies, server_url: str, database_url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'alter database "{name}" connection limit 0')
        found = wrong(app)
        connection.execute(f'alter database "{name}" connection limit -1')

    assert set(found) == {"connections"}
    assert "too many connections" in found["connections"].text


def test_old_functions_and_a_missing_migration(app: Horsies, db: Database) -> None:
    db.execute("update horsies_schema_version set name = '1:1:old' where version = 0")
    db.execute("delete from horsies_schema_version where version = 12")

    found = wrong(app)["schema"]

    assert found.text == "The schema lacks functions and 0012_operations of this release."
    assert found.cure == "run `horsies migrate`"
    assert db.value("select name from horsies_schema_version where version = 0") == "1:1:old"


def test_an_empty_database_is_told_to_migrate(empty_database_url: str) -> None:
    app = Horsies(AppConfig(broker=PostgresConfig(database_url=empty_database_url)))

    assert "schema" in wrong(app)


def test_a_silent_worker(app: Horsies, db: Database) -> None:
    snapshot(db, snapshot_at=datetime.now(UTC) - timedelta(minutes=2, seconds=1))

    found = wrong(app)

    assert set(found) == {"worker_silent", "no_worker"}
    assert "The worker on host-a pid 4711 has sent no sign of life for 2 min" in (
        found["worker_silent"].text
    )


def test_a_worker_of_another_version(app: Horsies, db: Database) -> None:
    snapshot(db, version="0.1.9")

    (hint,) = [one for one in good(app.operations.doctor()) if one.check == "worker_version"]

    assert hint.text == f"the worker on host-a pid 4711 runs horsies 0.1.9, this is {__version__}."
    assert not hint.is_wrong


KNOWN = [IndexHealth(name, True, 8192, 1.0) for name in INDEXES]
HEALTHY = ServerHealth(
    notify_usage=0.0, database_time=datetime.now(UTC), is_replica=False, connection_count=10,
    connection_limit=100, has_autovacuum=True, has_counts=True, has_fsync=True,
    has_page_writes=True, has_sync_commit=True, has_idle_limit=True, role_name="shop",
)  # fmt: skip
TABLE = TableHealth("horsies_tasks", 1_000, 0, None, datetime.now(UTC), False, True, True)


@pytest.mark.parametrize(
    ("findings", "check", "text"),
    [
        (doctor._server(HEALTHY._replace(connection_count=90)), "connections", "90 of 100"),
        (doctor._server(HEALTHY._replace(notify_usage=0.5)), "notify_queue", "50% full"),
        (doctor._server(HEALTHY._replace(has_autovacuum=False)), "autovacuum", "is off on this"),
        (doctor._clock(timedelta(seconds=-90)), "clock", "1 min 30 s behind this machine's"),
        (
            doctor._tables([TABLE._replace(dead_count=60_000)], HEALTHY),
            "dead_rows",
            "60,000 dead rows beside 1,000 live ones; it was last vacuumed never",
        ),
        (
            doctor._tables([TABLE._replace(may_read=False)], HEALTHY),
            "grants",
            "The role shop may not read horsies_tasks",
        ),
        (
            doctor._indexes([*KNOWN, IndexHealth("own_idx", True, 2**30, 1_000.0)]),
            "index_bloated",
            "own_idx takes 1,024 MB for 1,000 rows",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_what_cannot_be_planted_cheaply(findings: Iterator[Finding], check: str, text: str) -> None:
    (found,) = findings

    assert (found.check, found.is_wrong) == (check, True)
    assert text in found.text
    assert found.cure


def test_the_lists_are_those_of_a_fresh_schema(db: Database) -> None:
    indexes = db.execute(
        "select i.indexname from pg_indexes i where i.schemaname = 'public'"
        " and not exists (select from pg_constraint c where c.conname = i.indexname)"
    )
    triggers = db.execute("select tgname from pg_trigger where not tgisinternal")

    assert sorted(row["indexname"] for row in indexes) == sorted(INDEXES)
    assert sorted(row["tgname"] for row in triggers) == sorted(TRIGGERS)
    assert all(definition_of(name).startswith("create ") for name in [*INDEXES, *TRIGGERS])
