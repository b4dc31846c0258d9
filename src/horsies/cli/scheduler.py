"""`horsies scheduler`: send what is scheduled until a signal stops it."""

import asyncio
import signal
import sys

import click

from horsies.cli.locating import takes_app
from horsies.cli.printing import echo
from horsies.cli.worker import LEVELS, require_schedules
from horsies.locator import joined, load_app
from horsies.observability.logs import set_up_logging


@click.command("scheduler")
@takes_app
@click.option("--loglevel", type=LEVELS, default="INFO", show_default=True)
def command(locator: str | None, loglevel: str) -> None:
    """Run the scheduler of the app in MODULE (shop.queue:app, shop/queue.py).

    Start as many as you like: each slot is sent once. SIGTERM or Ctrl-C stops it after the pass
    under way.
    """
    from horsies.scheduling.process import run_scheduler
    from horsies.scheduling.scheduler import Scheduler

    set_up_logging(loglevel.upper(), "text")
    app = load_app(locator)
    app.set_role("scheduler")
    config = require_schedules(app)
    if errors := app.check():
        raise joined(errors)
    enabled = [schedule.name for schedule in config.schedules if schedule.enabled]
    echo(f"scheduler: {len(enabled)} schedules: {', '.join(enabled[:20]) or 'none'}")
    database = app.get_broker().database
    stops = [signal.SIGTERM, signal.SIGINT]
    sys.exit(asyncio.run(run_scheduler(Scheduler(app), database, stops)))
