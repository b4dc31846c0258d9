"""`horsies check`: validate an app without starting it."""

import logging
import sys

import click

from horsies.cli.locating import takes_app
from horsies.cli.worker import LEVELS
from horsies.locator import joined, load_app, require_tasks


@click.command("check")
@takes_app
@click.option("--loglevel", type=LEVELS, default="WARNING", show_default=True)
@click.option("--live", is_flag=True, help="Also check that the database answers.")
def command(locator: str | None, loglevel: str, *, live: bool) -> None:
    """Check the configuration, task modules and policies of the app in MODULE.

    Prints all problems of a phase at once, each with its place and how to fix it. Exits with 1 if
    there are any.
    """
    logging.basicConfig(level=loglevel.upper(), stream=sys.stderr)
    app = load_app(locator, keeps_mistakes=True)
    if errors := app.check(live=live):
        raise joined(errors)
    require_tasks(app)
    click.echo("ok: all validations passed")
    click.echo(f"{len(app.list_tasks())} task(s) registered")
