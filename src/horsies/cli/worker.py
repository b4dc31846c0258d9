"""`horsies worker`: run a worker process until it is told to stop."""

import logging
import os
import signal
import sys
from typing import Any

import click

from horsies.cli.locating import takes_app
from horsies.cli.reloading import run_reloading
from horsies.errors import HorsiesError, MultipleValidationErrors, ValidationReport
from horsies.locator import load_app

LEVELS = click.Choice(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], case_sensitive=False)
_POSITIVE = click.IntRange(min=1)
_COUNT = click.IntRange(min=0)


@click.command("worker")
@takes_app
@click.option("--loglevel", type=LEVELS, default="INFO", show_default=True)
@click.option(
    "--processes",
    type=_POSITIVE,
    default=None,
    help="Child processes for plain functions.  [default: CPU count]",
)
@click.option(
    "--concurrency", type=_POSITIVE, default=100, show_default=True, help="Coroutine tasks at once."
)
@click.option(
    "--threads",
    type=_POSITIVE,
    default=None,
    help="Blocking tasks at once.  [default: as --processes]",
)
@click.option(
    "--queues", default="", help="Serve only these queues, separated by commas.  [default: all]"
)
@click.option(
    "--drain-timeout",
    type=click.FloatRange(min=0),
    default=None,
    help="Seconds until a stopping worker hands back what is interruptible.  [default: no limit]",
)
@click.option("--burst", is_flag=True, help="Run what is waiting, then exit.")
@click.option("--reload", is_flag=True, help="Restart when a Python file changes (development).")
@click.option(
    "--max-claim-batch", type=_COUNT, default=0, help="Rows per queue and claim; 0 is automatic."
)
@click.option(
    "--max-claim-per-worker",
    type=_COUNT,
    default=0,
    help="Claims waiting in this worker; 0 is automatic.",
)
@click.option(
    "--max-tasks-per-child",
    type=_COUNT,
    default=0,
    help="Replace a child after so many tasks; 0 is never.",
)
@click.option(
    "--max-memory-per-child-mb",
    type=_COUNT,
    default=0,
    help="End a task whose child grows larger; 0 is off.",
)
def command(locator: str | None, **options: Any) -> None:
    """Run a worker for the app in MODULE (shop.queue:app, shop/queue.py).

    Stops gracefully on SIGTERM or Ctrl-C: unstarted work goes back, running tasks finish. A second
    signal stops at once.
    """
    if options.pop("reload"):
        sys.exit(run_reloading())
    logging.basicConfig(
        level=options["loglevel"].upper(),
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    # Until the worker runs there is nothing to hand back: a stop signal just ends the process.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    app = load_app(locator)
    app.set_role("worker")
    if errors := app.check():
        raise joined(errors)
    sys.exit(run_worker(app, locator, options))


def run_worker(app: Any, locator: str | None, options: dict[str, Any]) -> int:
    """Set up and run; the exit code."""
    from horsies.worker.main_loop import run_to_end
    from horsies.worker.settings import WorkerConfig
    from horsies.worker.startup import serve

    settings = WorkerConfig(
        processes=options["processes"] or os.cpu_count() or 1,
        concurrency=options["concurrency"],
        threads=options["threads"] or 0,
        queues=_queues(app, options["queues"]),
        max_claim_batch=options["max_claim_batch"],
        max_claim_per_worker=options["max_claim_per_worker"],
        max_tasks_per_child=options["max_tasks_per_child"],
        max_memory_per_child_mb=options["max_memory_per_child_mb"],
        app_locator=locator,
        is_burst=options["burst"],
        drain_timeout_s=options["drain_timeout"],
    )
    return run_to_end(serve(app, settings, [signal.SIGTERM, signal.SIGINT]))


def _queues(app: Any, text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    valid = app.get_valid_queue_names()
    unknown = [name for name in names if name not in valid]
    if unknown:
        raise click.BadParameter(
            f"{', '.join(unknown)}; this app has {', '.join(valid)}", param_hint="--queues"
        )
    return names


def joined(errors: list[HorsiesError]) -> HorsiesError:
    if len(errors) == 1:
        return errors[0]
    report = ValidationReport("check")
    for error in errors:
        report.add(error)
    return MultipleValidationErrors("", report)
