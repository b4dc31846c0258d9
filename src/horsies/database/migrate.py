"""Brings the tables and functions of a database to this release, under an advisory lock.

Anything may call it at any time from any number of processes; a database that is current costs two
reads.
"""

from typing import Any

import psycopg
from psycopg import Connection, sql
from psycopg.rows import TupleRow

from horsies.codes import ErrorCode
from horsies.database.sql_files import functions_digest, functions_sql, migrations, query
from horsies.errors import ConfigurationError

_FUNCTIONS_VERSION = 0  # the row that remembers which functions are stored


def migrate(connection: Connection[TupleRow], *, schema: str | None = None) -> list[str]:
    """Apply what is missing and say what that was.

    Needs the right to create tables only if something is missing.
    """
    if not pending(connection, schema=schema):
        return []
    name = resolve_schema(connection, schema)
    try:
        with connection.transaction():
            return _apply(connection, name, may_create=schema is not None)
    except psycopg.errors.InsufficientPrivilege as error:
        role = connection.info.user
        raise ConfigurationError(
            f"the database role {role!r} may not create or change the tables: {error}".strip(),
            code=ErrorCode.BROKER_INIT_FAILED,
            help_text=f'grant usage, create on schema "{name}" to "{role}";\n'
            "or run `horsies migrate` once as the role that owns the tables",
        ) from error


def _apply(connection: Connection[TupleRow], name: str, *, may_create: bool) -> list[str]:
    connection.execute(query("database", "lock_schema").encode(), {"schema": name})
    if may_create:
        create = sql.SQL("create schema if not exists {}").format(sql.Identifier(name))
        connection.execute(create)
    _enter_schema(connection, name)
    connection.execute(query("database", "create_version_table").encode())
    applied: list[str] = []
    versions = _applied(connection)
    if versions.get(_FUNCTIONS_VERSION) != functions_digest():
        # Functions first: the migrations' triggers name them, and PL/pgSQL binds tables late.
        connection.execute(query("database", "drop_functions").encode())
        connection.execute(functions_sql().encode())
        _record(connection, _FUNCTIONS_VERSION, functions_digest())
        applied.append("functions")
    for migration in migrations():
        if migration.version not in versions:
            connection.execute(migration.sql.encode())
            _record(connection, migration.version, migration.name)
            applied.append(f"{migration.version:04d}_{migration.name}")
    return applied


def pending(connection: Connection[TupleRow], *, schema: str | None = None) -> list[str]:
    """What `migrate` would apply. Refuses a database that a newer release has already changed."""
    with connection.transaction():
        name = resolve_schema(connection, schema)
        _enter_schema(connection, name)
        has_table = _scalar(connection, query("database", "has_version_table"), {"schema": name})
        versions = _applied(connection) if has_table else {}
    newest = max((migration.version for migration in migrations()), default=0)
    if versions and max(versions) > newest:
        raise ConfigurationError(
            f"the database schema is newer than this horsies: "
            f"it has migration {max(versions)}, this release knows {newest}",
            code=ErrorCode.BROKER_INIT_FAILED,
            notes=["a newer release of horsies has already migrated this database"],
            help_text="install that release here too, or use another database",
        )
    missing = [f"{m.version:04d}_{m.name}" for m in migrations() if m.version not in versions]
    if versions.get(_FUNCTIONS_VERSION) != functions_digest():
        missing.insert(0, "functions")
    return missing


def migration_sql() -> str:
    """Everything `migrate` may run, to read or to hand to a database administrator."""
    parts = [query("database", name) + ";" for name in ("create_version_table", "drop_functions")]
    parts.append(functions_sql())
    parts.append(_record_text(_FUNCTIONS_VERSION, functions_digest()))
    for m in migrations():
        parts.append(f"-- migration {m.version:04d}_{m.name}\n{m.sql}")
        parts.append(_record_text(m.version, m.name))
    return "\n\n".join(parts)


def _record_text(version: int, name: str) -> str:
    """The statement of `_record` with its values written out: a number and a name of our own."""
    text = query("database", "record_version")
    return text.replace("%(version)s", str(version)).replace("%(name)s", f"'{name}'") + ";"


def resolve_schema(connection: Connection[TupleRow], schema: str | None) -> str:
    """The schema the tables live in: the configured one, else the connection's default."""
    found = schema or _scalar(connection, query("database", "current_schema"), {})
    if not isinstance(found, str):
        raise ConfigurationError(
            "the database has no schema to put tables in: its search_path names none that exists",
            code=ErrorCode.BROKER_INIT_FAILED,
            help_text="create one, or name it with PostgresConfig(schema=...)",
        )
    return found


def _enter_schema(connection: Connection[TupleRow], name: str) -> None:
    connection.execute(sql.SQL("set local search_path to {}").format(sql.Identifier(name)))


def _applied(connection: Connection[TupleRow]) -> dict[int, str]:
    return dict(connection.execute(query("database", "applied_versions").encode()).fetchall())


def _record(connection: Connection[TupleRow], version: int, name: str) -> None:
    connection.execute(
        query("database", "record_version").encode(), {"version": version, "name": name}
    )


def _scalar(
    connection: Connection[TupleRow], statement: str, parameters: dict[str, object]
) -> object:
    row: Any = connection.execute(statement.encode(), parameters).fetchone()
    return row[0] if row else None
