"""Brings the tables and functions of a database to this release, under an advisory lock.

Anything may call it at any time from any number of processes; a database that is current costs two
reads and needs no right to change it. An older release leaves what a newer one has installed.
"""

import logging
import re
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import psycopg
from psycopg import Connection, sql
from psycopg.rows import TupleRow

from horsies.clock import monotonic
from horsies.codes import ErrorCode
from horsies.database.sql_files import functions_digest, functions_sql, migrations, query
from horsies.database.statement import Statement, run_blocking
from horsies.errors import ConfigurationError

# The order of the functions among releases: raised whenever a release changes one of them.
FUNCTIONS_VERSION = 3
# The oldest release whose workers and producers these functions and tables still serve.
OLDEST_SERVED = 2
_FUNCTIONS_ROW = 0  # the row that remembers which functions are stored
_FUNCTIONS = "functions"
# A try queues for its locks for 0.3 s (limit_locks), with senders behind it; in between they pass.
_PAUSE_S = 3.0
_PATIENCE_S = 10.0
_logger = logging.getLogger("horsies.database")


class SchemaState(NamedTuple):
    """What `migrate` would apply, in this order; whether it would create everything."""

    missing: list[str]
    is_new: bool


class Holder(NamedTuple):
    """A session that stands in the way of a migration."""

    pid: int
    application: str
    state: str
    since: str
    what: str


class _MissingIndex(NamedTuple):
    name: str
    definition: str


class MigrationBlockedError(psycopg.errors.LockNotAvailable):
    """Another session holds what the migration needs; the message says which."""


def migrate(
    connection: Connection[TupleRow],
    *,
    schema: str | None = None,
    patience_s: float = _PATIENCE_S,
    report: Callable[[str], object] = _logger.warning,
) -> list[str]:
    """Apply what is missing and say what that was.

    Needs the right to create tables only if something is missing. While other sessions hold the
    tables it tries again for `patience_s`, and reports who they are after each try.
    """
    if not pending(connection, schema=schema):
        return []
    name = resolve_schema(connection, schema)
    deadline = monotonic() + patience_s
    while True:
        try:
            return _try(connection, name, may_create=schema is not None)
        except psycopg.errors.LockNotAvailable as error:
            blocked = _blocked_by(connection, name)
            if monotonic() + _PAUSE_S > deadline:
                raise MigrationBlockedError(blocked) from error
        report(f"{blocked}; the next try is in {_PAUSE_S:g} s")
        time.sleep(_PAUSE_S)


def _try(connection: Connection[TupleRow], name: str, *, may_create: bool) -> list[str]:
    try:
        with connection.transaction():
            return _apply(connection, name, may_create=may_create)
    except psycopg.errors.InsufficientPrivilege as error:
        role = connection.info.user
        raise ConfigurationError(
            f"the database role {role!r} may not create or change the tables: {error}".strip(),
            code=ErrorCode.BROKER_INIT_FAILED,
            help_text=f'grant usage, create on schema "{name}" to "{role}";\n'
            "or run `horsies migrate` once as the role that owns the tables",
        ) from error


def remove(connection: Connection[TupleRow], *, schema: str | None = None) -> None:
    """Drop all tables and functions with everything in them."""
    name = resolve_schema(connection, schema)
    with connection.transaction():
        connection.execute(query("database", "lock_schema").encode(), {"schema": name})
        _enter_schema(connection, name)
        connection.execute(query("database", "drop_everything").encode())


def missing_indexes(connection: Connection[TupleRow], *, schema: str | None = None) -> list[str]:
    """The statements that build what a migration left out where the table was large."""
    name = resolve_schema(connection, schema)
    statement = Statement(query("database", "missing_indexes"), {"schema": name}, _MissingIndex)
    quoted = sql.Identifier(name).as_string(None)
    return [
        statement
        for index in run_blocking(connection, statement)
        for statement in (
            f"drop index concurrently if exists {quoted}.{index.name}",
            f"create index concurrently {index.name} on {quoted}.{index.definition}",
        )
    ]


def build_indexes(connection: Connection[TupleRow], *, schema: str | None = None) -> list[str]:
    """Build them, for as long as it takes; nobody waits meanwhile, but for another build."""
    connection.execute("set statement_timeout = 0")
    statements = missing_indexes(connection, schema=schema)
    for statement in statements:
        connection.execute(statement.encode())
    return statements


def _apply(connection: Connection[TupleRow], name: str, *, may_create: bool) -> list[str]:
    connection.execute(query("database", "limit_migration").encode())
    connection.execute(query("database", "lock_schema").encode(), {"schema": name})
    connection.execute(query("database", "limit_locks").encode())
    if may_create:
        create = sql.SQL("create schema if not exists {}").format(sql.Identifier(name))
        connection.execute(create)
    _enter_schema(connection, name)
    connection.execute(query("database", "create_version_table").encode())
    applied = _applied(connection)  # another process may have been faster
    if not applied:
        _refuse_others(connection, name)
    missing = _missing(applied)
    for part in missing:
        connection.execute(_sql_of(part).encode())
        connection.execute(_record_of(part).encode())
    return missing


def _refuse_others(connection: Connection[TupleRow], name: str) -> None:
    """Before the first migration: what has the name of a table of ours must be one."""
    texts = "".join(migration.sql for migration in migrations())
    names = re.findall(r"create table if not exists (\w+)", texts)
    found = connection.execute(query("database", "relations_of_others").encode(), {"names": names})
    for relation, kind in found.fetchall():
        raise ConfigurationError(
            f"schema {name!r} has a {kind} named {relation!r} that is not ours",
            code=ErrorCode.BROKER_INIT_FAILED,
            help_text='keep our tables apart from it: PostgresConfig(schema="jobs")',
        )


def pending(connection: Connection[TupleRow], *, schema: str | None = None) -> list[str]:
    """What `migrate` would apply, in this order."""
    return state_of(connection, schema=schema).missing


def state_of(connection: Connection[TupleRow], *, schema: str | None = None) -> SchemaState:
    """What this release lacks in the database."""
    with connection.transaction():
        name = resolve_schema(connection, schema)
        _enter_schema(connection, name)
        has_table = _scalar(connection, query("database", "has_version_table"), {"schema": name})
        applied = _applied(connection) if has_table else {}
        return SchemaState(_missing(applied), is_new=not applied)


def outdated(missing: Sequence[str]) -> ConfigurationError:
    """The refusal of a schema that this process may not migrate."""
    return ConfigurationError(
        f"the database schema is older than this horsies: {', '.join(missing)} missing",
        code=ErrorCode.BROKER_INIT_FAILED,
        help_text="run `horsies migrate MODULE` with this release, "
        "or let every process migrate: PostgresConfig(auto_migrate=True)",
    )


def pending_sql(connection: Connection[TupleRow], *, schema: str | None = None) -> str:
    """What `migrate` would run, to read or to hand to a database administrator."""
    parts = pending(connection, schema=schema)
    script = _script(parts, resolve_schema(connection, schema))
    if parts:  # which indexes are missing shows when they have been applied
        return script
    late = missing_indexes(connection, schema=schema)
    return ";\n".join([*late, ""]) if late else script


def migration_sql() -> str:
    """Everything a fresh database gets, in its schema public."""
    return _script(_missing({}), "public")


def _missing(applied: dict[int, str]) -> list[str]:
    """Functions first: the migrations' triggers name them, and PL/pgSQL binds tables late."""
    known = applied.get(_FUNCTIONS_ROW, "0:0:")
    installed, oldest_served, digest = (
        (1, 1, known) if known.count(":") != 2 else _split(known)  # 0.1 wrote only the digest
    )
    if oldest_served > FUNCTIONS_VERSION:
        raise ConfigurationError(
            "the database schema is newer than this horsies: a release that no longer serves this "
            "one has migrated it",
            code=ErrorCode.BROKER_INIT_FAILED,
            notes=[
                f"it serves clients from version {oldest_served} on, this is {FUNCTIONS_VERSION}"
            ],
            help_text="install that release here too, or use another database",
        )
    is_older = installed < FUNCTIONS_VERSION
    is_other = installed == FUNCTIONS_VERSION and digest != functions_digest()
    missing = [_FUNCTIONS] if is_older or is_other else []
    return missing + [f"{m.version:04d}_{m.name}" for m in migrations() if m.version not in applied]


def _split(known: str) -> tuple[int, int, str]:
    installed, oldest_served, digest = known.split(":")
    return int(installed), int(oldest_served), digest


def _sql_of(part: str) -> str:
    if part == _FUNCTIONS:
        return query("database", "drop_functions") + ";\n" + functions_sql()
    return next(m.sql for m in migrations() if part == f"{m.version:04d}_{m.name}")


def _record_of(part: str) -> str:
    """The statement that remembers a part; its values are a number and a name of our own."""
    version = _FUNCTIONS_ROW
    name = f"{FUNCTIONS_VERSION}:{OLDEST_SERVED}:{functions_digest()}"
    if part != _FUNCTIONS:
        number, _, name = part.partition("_")
        version = int(number)
    text = query("database", "record_version")
    return text.replace("%(version)s", str(version)).replace("%(name)s", f"'{name}'") + ";"


def _script(parts: Sequence[str], schema: str) -> str:
    if not parts:
        return "-- nothing to do: the database is up to date"
    quoted = sql.Identifier(schema).as_string(None)
    steps = [f"set local search_path to {quoted};", query("database", "create_version_table") + ";"]
    for part in parts:
        steps += [f"-- {part}", _sql_of(part), _record_of(part)]
    return "\n\n".join(["begin;", *steps, "commit;"])


def _blocked_by(connection: Connection[TupleRow], schema: str) -> str:
    statement = Statement(query("database", "migration_holders"), {"schema": schema}, Holder)
    holders = run_blocking(connection, statement)
    if not holders:
        return "the tables were locked by other sessions for too long; they are free now, try again"
    shown = "; ".join(
        f"pid {holder.pid} ({holder.application or 'no name'}, {holder.state} since "
        f"{holder.since}) holds {holder.what}"
        for holder in holders
    )
    return f"the migration waits for other sessions: {shown}"


def resolve_schema(connection: Connection[TupleRow], schema: str | None) -> str:
    """The schema the tables live in: the configured one, else the connection's default."""
    found = schema or _scalar(connection, query("database", "current_schema"), {})
    if not isinstance(found, str):
        raise ConfigurationError(
            "the database has no schema to put tables in: its search_path names none that exists",
            code=ErrorCode.BROKER_INIT_FAILED,
            help_text="create one, or name it with PostgresConfig(schema=...)",
        )
    if found.startswith("pg_temp"):
        raise ConfigurationError(
            "the search_path of this database begins with pg_temp: tables made there would vanish",
            code=ErrorCode.BROKER_INIT_FAILED,
            help_text='name the schema of the tables: PostgresConfig(schema="public")',
        )
    return found


def _enter_schema(connection: Connection[TupleRow], name: str) -> None:
    connection.execute(sql.SQL("set local search_path to {}").format(sql.Identifier(name)))


def _applied(connection: Connection[TupleRow]) -> dict[int, str]:
    return dict(connection.execute(query("database", "applied_versions").encode()).fetchall())


def _scalar(
    connection: Connection[TupleRow], statement: str, parameters: dict[str, object]
) -> object:
    row = connection.execute(statement.encode(), parameters).fetchone()
    return row[0] if row else None
