"""`horsies check`: validate an app without starting it."""

import click

from horsies.app import Horsies
from horsies.cli.locating import takes_app
from horsies.cli.printing import echo
from horsies.cli.worker import LEVELS
from horsies.config.sources import described
from horsies.locator import joined, load_app, require_tasks
from horsies.observability.logs import set_up_logging


@click.command("check")
@takes_app
@click.option("--loglevel", type=LEVELS, default="WARNING", show_default=True)
@click.option("--live", is_flag=True, help="Also check that the database answers.")
@click.option("--show-config", is_flag=True, help="Show every setting and where it comes from.")
def command(locator: str | None, loglevel: str, *, live: bool, show_config: bool) -> None:
    """Check the configuration, task modules and policies of the app in MODULE.

    Prints all problems of a phase at once, each with its place and how to fix it. Exits with 1 if
    there are any.
    """
    set_up_logging(loglevel.upper(), "text")
    app = load_app(locator, keeps_mistakes=True)
    if show_config:
        _show_config(app)
    if errors := app.check(live=live):
        raise joined(errors)
    require_tasks(app)
    echo("ok: all validations passed")
    echo(f"{len(app.list_tasks())} task(s) registered")


def _show_config(app: Horsies) -> None:
    rows = list(described(app.config, app.config_sources))
    names, values = (max(len(row[column]) for row in rows) for column in (0, 1))
    width = min(values, 44)
    for name, value, source in rows:
        echo(f"{name:<{names}}  {value:<{width}}  {source}")
    echo()
