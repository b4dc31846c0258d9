"""`horsies health`: one line and an exit code, for orchestrators and scripts."""

import sys

import click

from horsies.app import Horsies
from horsies.cli.operating import as_json, print_json, takes_app, value_of
from horsies.cli.printing import echo


@click.command("health")
@takes_app
@click.option(
    "--workers",
    "wanted",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="How many workers must be alive.",
)
@click.option("--timeout-ms", type=click.IntRange(min=1), default=2000, show_default=True)
@as_json
def command(app: Horsies, wanted: int, timeout_ms: int, *, is_json: bool) -> None:
    """Exit with 0 if the database answers and enough workers are alive, by their snapshots.

    A worker whose event loop is blocked by user code is alive; `horsies ping --workers N` asks
    whether workers answer.
    """
    pong = value_of(app.ping_database(timeout_ms))
    workers = value_of(app.operations.workers())
    alive = [worker for worker in workers if worker.state == "alive"]
    is_well = len(alive) >= wanted
    if is_json:
        facts = {"is_well": is_well, "workers_alive": len(alive), "workers_wanted": wanted}
        print_json({**facts, "database_ms": round(pong.round_trip_ms, 1)})
    else:
        state = "well" if is_well else "not well"
        echo(f"{state}: the database answers, {len(alive)} worker(s) alive, {wanted} needed")
    sys.exit(0 if is_well else 1)
