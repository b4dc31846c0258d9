"""The engine's schema on Django's own connections: what `migrate` applies, undoes and looks at."""

from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations.base import Operation

from horsies.contrib.django.conf import SIMPLE_QUEUE, setting
from horsies.database.migrate import migrate, migration_sql, remove


class EngineSchema(Operation):
    """Brings the engine's tables and functions to this release; the reverse drops them all.

    The engine applies its own numbered migrations under a lock. On a database that is current,
    whoever made it so, that is two reads.
    """

    reversible = True
    reduces_to_sql = True

    def state_forwards(self, app_label: str, state: Any) -> None:
        """The models follow in operations of their own."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        if not _is_our_database(app_label, schema_editor.connection.alias):
            return
        if schema_editor.collect_sql:
            schema_editor.collected_sql.append(migration_sql())
        else:
            update(schema_editor.connection.alias)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        connection = schema_editor.connection
        if _is_our_database(app_label, connection.alias) and not schema_editor.collect_sql:
            connection.ensure_connection()
            remove(connection.connection)

    def describe(self) -> str:
        return "Create or upgrade the tables and functions of horsies"


def _is_our_database(app_label: str, alias: str) -> bool:
    from django.db import router

    return bool(router.allow_migrate(alias, app_label))


def update(alias: str) -> list[str]:
    """Apply what this release has and the database lacks."""
    connection = connections[alias]
    connection.ensure_connection()
    return migrate(connection.connection)


def is_installed(alias: str) -> bool:
    connection = connections[alias]
    if connection.vendor != "postgresql":
        return False
    return "horsies_tasks" in connection.introspection.table_names()


def pending_migrations(alias: str | None = None) -> list[str]:
    """The migrations of our apps that this database lacks."""
    connection = connections[alias or setting("DATABASE_ALIAS") or DEFAULT_DB_ALIAS]
    executor = MigrationExecutor(connection)
    ours = [
        node for node in executor.loader.graph.leaf_nodes() if node[0] in ("horsies", SIMPLE_QUEUE)
    ]
    return [f"{app}.{name}" for (app, name) in _names(executor.migration_plan(ours))]


def _names(plan: Any) -> list[tuple[str, str]]:
    ours = ("horsies", SIMPLE_QUEUE)
    return [(one.app_label, one.name) for one, _ in plan if one.app_label in ours]
