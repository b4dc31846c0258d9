"""`horsies migrate`: create or upgrade the tables."""

import sys
from typing import NoReturn

import click
import psycopg

from horsies.cli.locating import takes_app
from horsies.cli.printing import echo
from horsies.codes import ErrorCode
from horsies.database.migrate import (
    build_indexes,
    migrate,
    migration_sql,
    missing_indexes,
    pending,
    pending_sql,
)
from horsies.errors import ConfigurationError
from horsies.locator import load_app

_PATIENCE_S = 300.0


@click.command("migrate")
@takes_app
@click.option(
    "--sql",
    "is_sql",
    is_flag=True,
    help="Print the SQL that would run, and do not run it; without MODULE, that of a new database.",
)
@click.option(
    "--check",
    "is_check",
    is_flag=True,
    help="Change nothing; exit with 1 if a migration is missing.",
)
def command(locator: str | None, *, is_sql: bool, is_check: bool) -> None:
    """Create or upgrade the tables of the app in MODULE.

    Safe to run repeatedly and from several machines at once. While other sessions hold the tables
    it tries again for five minutes, without holding anybody up, and says who they are.
    """
    if is_sql and locator is None:
        echo(migration_sql())
        return
    database = load_app(locator).get_broker().database
    schema = database.config.schema
    try:
        with database.address.connect("horsies migrate") as connection:
            if is_sql:
                echo(pending_sql(connection, schema=schema))
                return
            if is_check:
                missing = pending(connection, schema=schema)
                _show_missing(missing or missing_indexes(connection, schema=schema))
            applied = migrate(
                connection, schema=schema, patience_s=_PATIENCE_S, report=_report_progress
            )
            applied += build_indexes(connection, schema=schema)
    except psycopg.Error as error:
        raise ConfigurationError(
            f"cannot reach the tables: {error}",
            ErrorCode.BROKER_INIT_FAILED,
            help_text="check the URL, that the server is running, and the privileges of this user",
        ) from error
    for name in applied:
        echo(f"applied: {name}")
    echo("done" if applied else "up to date")


def _report_progress(text: str) -> None:
    echo(text, err=True)


def _show_missing(missing: list[str]) -> NoReturn:
    for name in missing:
        echo(f"missing: {name}")
    echo("run `horsies migrate` to apply" if missing else "up to date")
    sys.exit(1 if missing else 0)
