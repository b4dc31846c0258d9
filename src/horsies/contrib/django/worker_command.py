"""What `manage.py horsies_worker` and `task_worker` share: options, and the way to the engine."""

import logging
import math
import os
import re
import signal
import sys
import threading
import time
from argparse import ArgumentParser, BooleanOptionalAction
from typing import Any

from django.conf import settings as django_settings
from django.core.management.base import BaseCommand, CommandError

from horsies.contrib.django.conf import setting
from horsies.contrib.django.connections import close_connections
from horsies.contrib.django.models import Task
from horsies.contrib.django.project import (
    LOCATOR,
    app,
    configured_queues,
    queue_config,
    task_settings,
)
from horsies.contrib.django.schema import pending_migrations
from horsies.observability.logs import TEXT_FORMAT, TextFormatter
from horsies.worker.main_loop import run_to_end
from horsies.worker.reloading import run_reloading
from horsies.worker.settings import WorkerConfig
from horsies.worker.startup import serve

_WORKER_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.@-]{0,63}")
_RELOADED = "HORSIES_RELOADED"  # set for the process that is started again and again
_LEVELS = {0: "CRITICAL", 1: "INFO", 2: "DEBUG", 3: "DEBUG"}


class WorkerCommand(BaseCommand):
    """Runs a worker of this project until a signal stops it."""

    help = "Run a worker: it executes the tasks of this project until a signal stops it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        given: dict[str, Any] = setting("WORKER")

        def default(name: str, otherwise: Any) -> Any:
            return given.get(name.upper(), otherwise)

        add = parser.add_argument
        add(
            "--queue-name",
            default=default("queue_name", "*"),
            metavar="A,B",
            help="queues to serve, separated by commas; * for all (the default)",
        )
        add("--exclude-queues", default="", metavar="A,B", help="queues that * leaves out")
        add(
            "--interval",
            type=float,
            default=default("interval", None),
            help="seconds between two looks when no notification comes",
        )
        add("--batch", action="store_true", help="run what can run now, then exit")
        add(
            "--reload",
            action=BooleanOptionalAction,
            default=None,
            help="restart when a Python file changes (default: settings.DEBUG)",
        )
        add("--backend", default=None, help="serve only the queues of this entry of TASKS")
        add("--no-startup-delay", action="store_true", help="accepted for old command lines")
        add(
            "--max-tasks",
            type=int,
            default=default("max_tasks", None),
            help="exit after this many tasks",
        )
        add("--worker-id", default=None, help="1 to 64 letters, digits and _.@-")
        add(
            "--processes",
            type=int,
            default=default("processes", None),
            help="child processes (default: one per CPU)",
        )
        add(
            "--threads",
            "--concurrency",
            type=int,
            default=default("threads", None),
            help="native tasks that threads and the event loop run at once",
        )
        add(
            "--wait-for-migrations",
            type=float,
            default=0,
            metavar="SECONDS",
            help="wait so long for `migrate` instead of refusing to start",
        )
        add(
            "--scheduler",
            action=BooleanOptionalAction,
            default=default("scheduler", False),
            help="also send what is scheduled",
        )
        add("--drain-timeout", type=float, default=default("drain_timeout", 25.0))  # fmt: skip

    def handle(self, **options: Any) -> None:
        wants_reload = django_settings.DEBUG if options["reload"] is None else options["reload"]
        if wants_reload and not options["batch"] and _RELOADED not in os.environ:
            os.environ[_RELOADED] = "1"
            sys.exit(run_reloading())
        self._check(options)
        _configure_logging(options["verbosity"])
        _wait_for_migrations(options["wait_for_migrations"])
        queues = _queues(options)
        app.config = app.config.model_copy(update={**queue_config(queues), **_polling(options)})
        app.set_role("worker")
        _remember_schedules(options)
        share_python_path()
        close_connections()  # it needed them to look around; the engine has its own
        signals = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
        sys.exit(run_to_end(serve(app, _worker_config(options), signals)))

    def _check(self, options: dict[str, Any]) -> None:
        if options["exclude_queues"] and options["queue_name"] != "*":
            raise CommandError("--exclude-queues needs --queue-name '*'")
        interval = options["interval"]
        if interval is not None and not (math.isfinite(interval) and interval >= 0):
            raise CommandError("--interval must be a number of seconds, zero or more")
        for name in ("max_tasks", "processes", "threads"):
            if options[name] is not None and options[name] <= 0:
                raise CommandError(f"--{name.replace('_', '-')} must be positive")
        if options["worker_id"] is not None and not _WORKER_ID.fullmatch(options["worker_id"]):
            raise CommandError("--worker-id must be 1 to 64 letters, digits, or _.@-")
        if options["backend"] is not None and options["backend"] not in task_settings():
            raise CommandError(f"TASKS has no entry {options['backend']!r} with HorsiesBackend")


def share_python_path() -> None:
    """Let the processes that we start find the project's modules, wherever manage.py is."""
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [path for path in sys.path[:1] if path and path not in known]
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, known)])


def _worker_config(options: dict[str, Any]) -> WorkerConfig:
    return WorkerConfig(
        processes=options["processes"] or os.cpu_count() or 1,
        concurrency=options["threads"] or 100,
        threads=options["threads"] or 0,
        max_tasks_per_child=setting("MAX_TASKS_PER_CHILD"),
        app_locator=LOCATOR,
        is_burst=options["batch"],
        drain_timeout_s=options["drain_timeout"],
        has_scheduler=bool(options["scheduler"]),
        worker_id=options["worker_id"],
        max_tasks=options["max_tasks"] or 0,
        grace_s=float(setting("TERMINATE_GRACE")),
    )


def _queues(options: dict[str, Any]) -> list[str]:
    """The queues to serve; * also serves those that rows name and no setting does."""
    if options["queue_name"] != "*":
        return _split(options["queue_name"])
    names = set(configured_queues())
    if options["backend"] is not None:
        names = set(task_settings()[options["backend"]].get("QUEUES", ["default"]))
    if any(not parameters.get("QUEUES", ["default"]) for parameters in task_settings().values()):
        alias = setting("DATABASE_ALIAS")
        stored = Task.objects.using(alias).pending().order_by().values_list("queue_name", flat=True)
        names.update(stored.distinct())
    names -= set(_split(options["exclude_queues"]))
    if not names:
        raise CommandError("no queue is left to serve")
    return sorted(names)


def _split(text: str) -> list[str]:
    return sorted({name.strip() for name in text.split(",") if name.strip()})


def _polling(options: dict[str, Any]) -> dict[str, Any]:
    if options["interval"] is None:
        return {}
    interval_ms = min(300_000, max(1_000, int(options["interval"] * 1000)))
    resilience = app.config.resilience.model_copy(update={"notify_poll_interval_ms": interval_ms})
    return {"resilience": resilience}


def _remember_schedules(options: dict[str, Any]) -> None:
    if options["scheduler"] and app.config.schedule is None:
        raise CommandError('--scheduler needs HORSIES["APP"]["schedule"] = ScheduleConfig(...)')


def _wait_for_migrations(limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while pending := pending_migrations():
        if time.monotonic() >= deadline:
            raise CommandError(
                f"the database lacks {', '.join(pending)}; run manage.py migrate, "
                "or start the worker with --wait-for-migrations SECONDS"
            )
        threading.Event().wait(0.2)


def _configure_logging(verbosity: int) -> None:
    """Show our own logger on stderr, unless the project's LOGGING already handles it."""
    logger = logging.getLogger("horsies")
    known = [*logger.handlers, *logging.getLogger().handlers]
    if any(not isinstance(handler, logging.NullHandler) for handler in known):
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter(TEXT_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(_LEVELS[verbosity])
