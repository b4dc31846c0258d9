"""`horsies worker`: run a worker process until a signal stops it."""

import os
import signal
import sys
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from horsies.app import Horsies
from horsies.cli.locating import takes_app
from horsies.codes import ErrorCode
from horsies.config.schedules import ScheduleConfig
from horsies.errors import (
    ConfigurationError,
)
from horsies.locator import joined, load_app, require_tasks
from horsies.observability.logs import LogFormat, set_up_logging
from horsies.worker.reloading import run_reloading

if TYPE_CHECKING:
    from horsies.worker.task_log import LoggedTasks

LEVELS = click.Choice(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], case_sensitive=False)
_POSITIVE = click.IntRange(min=1)
_COUNT = click.IntRange(min=0)
_PORT = click.IntRange(min=0, max=65_535)


class WorkerOptions(TypedDict):
    """The options of the command, by the names that click gives them."""

    loglevel: str
    processes: int | None
    concurrency: int
    threads: int | None
    queues: str
    drain_timeout: float
    burst: bool
    max_claim_batch: int
    max_claim_per_worker: int
    max_tasks_per_child: int
    max_memory_per_child_mb: int
    with_scheduler: bool
    log_tasks: "LoggedTasks"
    log_format: LogFormat
    log_context: bool
    logging_setup: bool
    task_output: bool
    metrics_port: int | None
    health_port: int | None
    metrics_host: str


@click.command("worker")
@takes_app
@click.option("--loglevel", type=LEVELS, default="INFO", show_default=True)
@click.option(
    "--processes",
    type=_POSITIVE,
    default=None,
    help="Number of child processes for plain functions.  [default: CPU count]",
)
@click.option(
    "--concurrency",
    type=_POSITIVE,
    default=100,
    show_default=True,
    help="Coroutine tasks to run at once.",
)
@click.option(
    "--threads",
    type=_POSITIVE,
    default=None,
    help="Blocking tasks to run at once.  [default: as --processes]",
)
@click.option(
    "--queues", default="", help="Serve only these queues, separated by commas.  [default: all]"
)
@click.option(
    "--drain-timeout",
    type=click.FloatRange(min=0),
    default=25.0,
    show_default=True,
    help="Seconds until a stopping worker returns interruptible tasks; inf for no limit.",
)
@click.option(
    "--burst",
    is_flag=True,
    help="Run what can run now, then exit; what is due later or waits is left.",
)
@click.option(
    "--with-scheduler", is_flag=True, help="Also send what is scheduled; any number may do so."
)
@click.option(
    "--log-tasks",
    type=click.Choice(["all", "failures", "none"]),
    default="all",
    show_default=True,
    help="Which ends of tasks get a log line.",
)
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option(
    "--log-context",
    is_flag=True,
    help="Let text lines of tasks name the task, its attempt and the worker; JSON lines always do.",
)
@click.option(
    "--logging-setup/--no-logging-setup",
    default=True,
    help="Whether to set up logging, or leave that to the app's own module.",
)
@click.option(
    "--task-output/--no-task-output",
    default=True,
    help="Whether to show what child processes print, beside storing it.",
)
@click.option(
    "--metrics-port",
    type=_PORT,
    default=None,
    help="Serve /metrics for Prometheus, and the health pages.  [default: off]",
)
@click.option(
    "--health-port",
    type=_PORT,
    default=None,
    help="Serve /health/live and /health/ready.  [default: off]",
)
@click.option(
    "--metrics-host",
    default="127.0.0.1",
    show_default=True,
    help="The address of both; 0.0.0.0 for all.",
)
@click.option("--reload", is_flag=True, help="Restart when a Python file changes (development).")
@click.option(
    "--max-claim-batch", type=_COUNT, default=0, help="Rows per queue and claim; 0 means automatic."
)
@click.option(
    "--max-claim-per-worker",
    type=_COUNT,
    default=0,
    help="Claims that may wait in this worker; 0 means automatic.",
)
@click.option(
    "--max-tasks-per-child",
    type=_COUNT,
    default=0,
    help="Replace a child after this many tasks; 0 means never.",
)
@click.option(
    "--max-memory-per-child-mb",
    type=_COUNT,
    default=0,
    help="Kill or replace a child that uses more memory; 0 means no limit.",
)
def command(locator: str | None, *, reload: bool, **options: Unpack[WorkerOptions]) -> None:
    """Run a worker for the app in MODULE (shop.queue:app, shop/queue.py).

    SIGTERM or Ctrl-C stops it gracefully: it returns unstarted tasks to their queues and finishes
    running ones. A second signal stops it at once.
    """
    if reload:
        sys.exit(run_reloading())
    if options["logging_setup"]:
        set_up_logging(
            options["loglevel"].upper(),
            options["log_format"],
            has_context=options["log_context"],
        )
    # Before the worker runs there is nothing to return, so a stop signal simply ends the process.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    app = load_app(locator, keeps_mistakes=True)
    app.set_role("worker")
    if errors := app.check():
        raise joined(errors)
    require_tasks(app)
    if options["with_scheduler"]:
        require_schedules(app)
    sys.exit(run_worker(app, locator, options))


def run_worker(app: Horsies, locator: str | None, options: WorkerOptions) -> int:
    """Run a worker with these options and return its exit code."""
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
        has_scheduler=options["with_scheduler"],
        logged_tasks=options["log_tasks"],
        echoes_output=options["task_output"],
        metrics_port=options["metrics_port"],
        health_port=options["health_port"],
        http_host=options["metrics_host"],
    )
    return run_to_end(serve(app, settings, [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))


def require_schedules(app: Horsies) -> ScheduleConfig:
    """The schedules of an app that a scheduler may run, or a `ConfigurationError`."""
    config = app.config.schedule
    if config is None or not config.enabled:
        raise ConfigurationError(
            "this app has no schedules" if config is None else "the schedules are disabled",
            ErrorCode.CONFIG_INVALID_SCHEDULE,
            help_text="AppConfig(schedule=ScheduleConfig(schedules=[TaskSchedule(...)]))",
        )
    return config


def _queues(app: Horsies, text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    valid = app.get_valid_queue_names()
    unknown = [name for name in names if name not in valid]
    if unknown:
        raise click.BadParameter(
            f"{', '.join(unknown)}; this app has {', '.join(valid)}", param_hint="--queues"
        )
    return names
