"""`horsies ping`: check that the database and enough workers answer."""

import sys

import click

from horsies.cli.locating import takes_app
from horsies.cli.printing import echo
from horsies.locator import load_app
from horsies.result import Err


@click.command("ping")
@takes_app
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="How many workers must answer.",
)
@click.option("--timeout-ms", type=click.IntRange(min=1), default=2000, show_default=True)
def command(locator: str | None, workers: int, timeout_ms: int) -> None:
    """Exit with 0 if the database of the app in MODULE and enough workers answer in time."""
    app = load_app(locator)
    database = app.ping_database(timeout_ms)
    if isinstance(database, Err):
        echo(f"database: {database.err_value.message}", err=True)
        sys.exit(1)
    pong = database.ok_value
    echo(f"database: PostgreSQL {pong.server_version} in {pong.round_trip_ms:.1f} ms")
    if workers == 0:
        return
    answers = app.ping_workers(timeout_ms)
    found = [] if isinstance(answers, Err) else answers.ok_value
    for worker in found:
        echo(
            f"worker: {worker.hostname} pid {worker.pid}, {worker.tasks_running} running, "
            f"queues {', '.join(worker.queues)}, {worker.round_trip_ms:.1f} ms"
        )
    echo(f"{len(found)} of {workers} worker(s) answered")
    sys.exit(0 if len(found) >= workers else 1)
