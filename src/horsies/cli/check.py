"""`horsies check`: validate an app without starting it."""

import logging
import sys

import click

from horsies.cli.worker import LEVELS, joined
from horsies.locator import load_app


@click.command("check")
@click.argument("module", required=False)
@click.option(
    "-m", "--module", "module_option", help="The app: shop.queue:app or shop/queue.py:app."
)
@click.option("--loglevel", type=LEVELS, default="WARNING", show_default=True)
@click.option("--live", is_flag=True, help="Also ask the database for an answer.")
def command(module: str | None, module_option: str | None, loglevel: str, *, live: bool) -> None:
    """Check the app in MODULE: configuration, task modules, policies; with --live its database.

    All problems are shown at once, each with its place and its cure. Exits 1 when there is one.
    """
    logging.basicConfig(level=loglevel.upper(), stream=sys.stderr)
    app = load_app(module_option or module)
    if errors := app.check(live=live):
        raise joined(errors)
    click.echo("ok: all validations passed")
    click.echo(f"{len(app.list_tasks())} task(s) registered")
