"""Is the database fit for a queue? Each finding says what is wrong and what cures it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from horsies.clock import utc_now
from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.database.migrate import pending
from horsies.database.operation import FAILURES, describe, operation_error
from horsies.database.statement import run_blocking
from horsies.database.watchdog import Watchdog
from horsies.errors import HorsiesError
from horsies.operations import doctor_reading as reading
from horsies.operations.queues import state_of
from horsies.operations.reading import WorkerRow, workers
from horsies.operations.words import duration, listed
from horsies.result import Err, Ok
from horsies.result.broker import BrokerResult
from horsies.version import __version__

PATIENCE = timedelta(minutes=5)
_MANY_DEAD = 50_000
_LARGE_INDEX = 64 * 2**20
_BYTES_PER_ROW = 2_000  # a healthy entry of ours takes about a hundred
_CLOCK_LIMIT = timedelta(seconds=2)
_LIMIT_S = 60.0  # of the whole examination, on a server that does not answer


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or worth knowing if not `is_wrong`, and what cures it."""

    check: str
    text: str
    cure: str
    is_wrong: bool = True


def examine(database: Database, patience: timedelta) -> BrokerResult[list[Finding]]:
    """Look at the server and our tables on a connection of its own; change nothing."""
    try:
        connection = database.address.connect("horsies doctor")
    except FAILURES as error:
        if "too many" in str(error) or "remaining connection slots" in str(error):
            return Ok([_no_connection(error)])
        return Err(operation_error(BrokerErrorCode.DB_PING_FAILED, error))
    try:
        with connection, Watchdog().limit(connection, _LIMIT_S):
            return Ok(list(_findings(connection, database.config.schema, patience)))
    except FAILURES as error:
        return Err(operation_error(BrokerErrorCode.MONITORING_QUERY_FAILED, error))


def _findings(
    connection: Connection[TupleRow], schema: str | None, patience: timedelta
) -> Iterator[Finding]:
    before = utc_now()
    (server,) = run_blocking(connection, reading.server())
    between = before + (utc_now() - before) / 2
    yield from _server(server)
    yield from _clock(server.database_time - between)
    yield from _schema(connection, schema)
    for session in run_blocking(connection, reading.old_snapshots(patience)):
        yield Finding(
            "old_snapshot",
            f"Session {session.pid} ({session.application}, {session.state}) has had a transaction "
            f"open for {duration(session.age)}: vacuum removes nothing that ended since.",
            f"end it: pg_terminate_backend({session.pid}); its last query: {session.last_query}",
        )
    yield from _tables(run_blocking(connection, reading.tables()), server)
    yield from _indexes(run_blocking(connection, reading.indexes()))
    yield from _triggers(run_blocking(connection, reading.triggers()))
    if not server.is_replica:
        yield from _plan(connection)
    yield from _workers(connection)
    yield from _duties(connection)


def _no_connection(error: BaseException) -> Finding:
    return Finding(
        "connections",
        f"The server takes no more connections: {str(error).strip().splitlines()[-1]}",
        "end idle sessions, raise max_connections, or put PgBouncer in front",
    )


def _server(server: reading.ServerHealth) -> Iterator[Finding]:
    used = server.connection_count / max(server.connection_limit, 1)
    if used > 0.85:
        yield Finding(
            "connections",
            f"{server.connection_count} of {server.connection_limit} connections are in use.",
            "end idle sessions, raise max_connections, or put PgBouncer in front",
        )
    if server.notify_usage > 0.1:
        yield Finding(
            "notify_queue",
            f"The notification queue is {server.notify_usage:.0%} full: a listener does not read.",
            "find sessions that are idle in transaction after LISTEN, and end them",
        )
    if not server.has_autovacuum or not server.has_counts:
        yield Finding(
            "autovacuum",
            "Autovacuum is off on this server: tables and indexes grow without end.",
            "set autovacuum = on and track_counts = on, and reload",
        )
    unsafe = {"fsync": server.has_fsync, "full_page_writes": server.has_page_writes}
    for name, is_on in unsafe.items():
        if not is_on:
            yield Finding(
                "settings",
                f"{name} is off: a crash of the server may destroy the database.",
                f"set {name} = on, unless the data may be lost",
                is_wrong=False,
            )
    if not server.has_sync_commit:
        yield Finding(
            "settings",
            "synchronous_commit is off: a crash may lose tasks that send() has acknowledged.",
            "set synchronous_commit = on, unless that is what you want",
            is_wrong=False,
        )
    if not server.has_idle_limit:
        yield Finding(
            "settings",
            "idle_in_transaction_session_timeout is 0: one forgotten transaction holds up vacuum.",
            "set idle_in_transaction_session_timeout = '10min'",
            is_wrong=False,
        )


def _clock(difference: timedelta) -> Iterator[Finding]:
    if abs(difference) > _CLOCK_LIMIT:
        side = "ahead of" if difference > timedelta() else "behind"
        yield Finding(
            "clock",
            f"The database's clock is {duration(abs(difference))} {side} this machine's.",
            "run a time service on both",
        )


def _schema(connection: Connection[TupleRow], schema: str | None) -> Iterator[Finding]:
    try:
        missing = pending(connection, schema=schema)
    except HorsiesError as error:  # a newer release has migrated it
        yield Finding("schema", describe(error), "upgrade horsies on this machine")
        return
    if missing:
        yield Finding(
            "schema",
            f"The schema lacks {listed(missing)} of this release.",
            "run `horsies migrate`",
        )


def _tables(
    tables: Sequence[reading.TableHealth], server: reading.ServerHealth
) -> Iterator[Finding]:
    for table in tables:
        if table.is_unvacuumed:
            yield Finding(
                "autovacuum",
                f"Autovacuum is switched off for {table.name}.",
                f"alter table {table.name} reset (autovacuum_enabled)",
            )
        live, dead = table.live_count or 0, table.dead_count or 0
        if dead > max(_MANY_DEAD, live / 5):
            last = table.vacuumed_at
            when = "never" if last is None else f"{duration(table.read_at - last)} ago"
            yield Finding(
                "dead_rows",
                f"{table.name} has {dead:,} dead rows beside {live:,} live ones; "
                f"it was last vacuumed {when}.",
                f"vacuum {table.name}, and see whether an old transaction holds it up",
            )
    unreadable = [table.name for table in tables if not table.may_read]
    unwritable = [table.name for table in tables if not table.may_write]
    if unreadable or (unwritable and not server.is_replica):
        what = "read" if unreadable else "write"
        yield Finding(
            "grants",
            f"The role {server.role_name} may not {what} {listed(unreadable or unwritable)}.",
            "fine for a viewer or producer; for a worker see docs/how-to/secure-the-database.md",
            is_wrong=bool(unreadable),
        )


def _indexes(indexes: Sequence[reading.IndexHealth]) -> Iterator[Finding]:
    names = {index.name for index in indexes}
    for name in reading.INDEXES:
        if names and name not in names:
            yield Finding(
                "index_missing",
                f"The index {name} is missing: statements that need it read whole tables.",
                reading.definition_of(name),
            )
    for index in indexes:
        if not index.is_valid:
            yield Finding(
                "index_invalid",
                f"The index {index.name} is invalid: it costs writes and serves no read.",
                f"reindex index concurrently {index.name}",
            )
        elif index.byte_count > max(_LARGE_INDEX, index.row_count * _BYTES_PER_ROW):
            yield Finding(
                "index_bloated",
                f"The index {index.name} takes {index.byte_count / 2**20:,.0f} MB "
                f"for {index.row_count:,.0f} rows.",
                f"reindex index concurrently {index.name}",
            )


def _plan(connection: Connection[TupleRow]) -> Iterator[Finding]:
    """Whether a claim walks its index; without statistics or index it would read the backlog."""
    run_blocking(connection, reading.plan_as_claims_do())
    try:
        lines = [row.value for row in run_blocking(connection, reading.claim_plan())]
    except (psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege):
        return
    if not any("horsies_tasks_claim_idx" in line for line in lines):
        yield Finding(
            "claim_plan",
            f"A claim would not walk its index but: {' '.join(lines[-1].split())}",
            "analyze horsies_tasks; see that horsies_tasks_claim_idx is there",
        )


def _triggers(triggers: Sequence[reading.TriggerHealth]) -> Iterator[Finding]:
    enabled = {trigger.name for trigger in triggers if trigger.is_enabled}
    for name in reading.TRIGGERS:
        if name not in enabled:
            is_there = any(trigger.name == name for trigger in triggers)
            yield Finding(
                "trigger",
                f"The trigger {name} is {'disabled' if is_there else 'missing'}.",
                f"alter table … enable trigger {name}" if is_there else reading.definition_of(name),
            )


def _workers(connection: Connection[TupleRow]) -> Iterator[Finding]:
    try:
        rows = run_blocking(connection, workers(timedelta(hours=1)))
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedFunction):
        return  # told by the schema's own finding
    states = {row.worker_id: state_of(row) for row in rows}
    for row in rows:
        if states[row.worker_id] == "silent":
            age = duration(row.read_at - row.snapshot_at)
            yield Finding(
                "worker_silent",
                f"The worker on {row.hostname} pid {row.pid} has sent no sign of life for {age}.",
                "look at its log; if it has ended, this is forgotten after an hour",
            )
    alive = [row for row in rows if states[row.worker_id] == "alive"]
    for version, others in _other_versions(alive).items():
        yield Finding(
            "worker_version",
            f"{listed(others)} run{'s' * (len(others) == 1)} horsies {version}, "
            f"this is {__version__}.",
            "fine during an upgrade; then restart the workers that are behind",
            is_wrong=False,
        )
    if rows and "alive" not in states.values():
        yield Finding("no_worker", "No worker is alive.", "start one: horsies worker MODULE")


def _duties(connection: Connection[TupleRow]) -> Iterator[Finding]:
    try:
        failing = run_blocking(connection, reading.failing_duties())
    except (psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege):
        return
    for duty in failing:
        yield Finding(
            "duty",
            f"The workers could not {duty.name}, last tried {duration(duty.age)} ago: "
            f"{duty.failure}",
            "cure what the message says; any worker tries again",
        )


def _other_versions(alive: Sequence[WorkerRow]) -> dict[str, list[str]]:
    """Workers by their version, if it is not ours; old ones do not tell theirs."""
    found: dict[str, list[str]] = {}
    for row in alive:
        if row.version is not None and row.version != __version__:
            found.setdefault(row.version, []).append(f"the worker on {row.hostname} pid {row.pid}")
    return found
