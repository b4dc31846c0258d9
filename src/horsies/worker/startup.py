"""From settings to a running worker: schema, task modules, banner, signals; and its exit code."""

import asyncio
import gc
import inspect
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from horsies.app import Horsies
from horsies.config import AppConfig
from horsies.database.operation import FAILURES
from horsies.database.verdict import is_transient
from horsies.executors.base import ExecutorStartError
from horsies.passwords import mask_url
from horsies.worker.service_connection import DatabaseLostError, ServiceConnection
from horsies.worker.settings import WorkerConfig
from horsies.worker.stop_signals import StopSignals
from horsies.worker.worker import Worker

if TYPE_CHECKING:
    from horsies.worker.pages import WorkerPages

_logger = logging.getLogger("horsies.worker")
# Between two looks for garbage in cycles; Python's 700 is a handful of tasks.
_OBJECTS_PER_COLLECTION = 10_000
_BLOCKED_S = 1.0
# What tasks of user code have for their clean-up once the worker is done.
_STUBBORN_S = 5.0
_UNKNOWN = {
    "fail": "tasks whose name no living worker knows fail",
    "leave": "tasks whose name this worker does not know are left",
}


def serve(
    app: Horsies, settings: WorkerConfig, signals: Sequence[signal.Signals]
) -> Coroutine[Any, Any, int]:
    """Run a worker until one of the signals; 0 after a clean stop, 1 after an error."""
    return _serve_with_pages(app, settings, StopSignals(signals))


async def _serve_with_pages(app: Horsies, settings: WorkerConfig, signals: StopSignals) -> int:
    if settings.metrics_port is None and settings.health_port is None:
        return await _serve(app, settings, signals, None)
    from horsies.worker.pages import WorkerPages  # 1 MB of Python's own HTTP

    pages = WorkerPages(settings)
    pages.start()
    try:
        return await _serve(app, settings, signals, pages)
    finally:
        pages.close()


async def _serve(
    app: Horsies,
    settings: WorkerConfig,
    signals: StopSignals,
    pages: "WorkerPages | None",
) -> int:
    try:
        if not await _prepare(app, signals):
            _logger.info("stopped before the database answered")
            return 0
        app.import_task_modules()
        worker = Worker(app, settings)
        if pages is not None:
            pages.vitals = worker.vitals
        # The worker's own connections carry everything from here on; four connections are promised.
        app.get_broker().database.pool.close()
    except DatabaseLostError as error:
        return _failed(error)
    except FAILURES as error:
        return _failed(error)
    _obey_signals(worker, signals)
    _collect_rarely()
    _print_banner(app, worker)
    _logger.info("Concurrency config: %s", _concurrency(app.config, settings))
    failure: BaseException | None = None
    try:
        await _run_start_hooks(app)
        await worker.run()
    except* (DatabaseLostError, ExecutorStartError, StartHookError) as group:
        failure = group.exceptions[0]
    finally:
        signals.ignore()
        await _run_stop_hooks(app)
        await app.get_broker().close_async()
    code = 0 if failure is None else _failed(failure)
    _logger.info("worker stopped")
    if worker.lanes.has_abandoned or await _leave_stubborn_tasks():
        # asyncio would wait for them for ever; everything of ours is written and closed.
        logging.shutdown()
        os._exit(code)
    return code


async def _leave_stubborn_tasks() -> bool:
    """Cancel what user code has left in the loop; whether some of it goes on all the same."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if not left:
        return False
    for task in left:
        task.cancel()
    _, stubborn = await asyncio.wait(left, timeout=_STUBBORN_S)
    for task in stubborn:
        _logger.warning("left behind, it ignores its cancellation: %s", task.get_name())
    return bool(stubborn)


async def _run_hook(hook: Callable[[], object]) -> None:
    result = hook()
    if inspect.isawaitable(result):
        await result


class StartHookError(Exception):
    """A hook at the start of the worker raised, so the worker does not start."""


async def _run_start_hooks(app: Horsies) -> None:
    for hook in app.worker_start_hooks:
        try:
            await _run_hook(hook)
        except Exception as error:  # user code: hooks
            name = getattr(hook, "__qualname__", repr(hook))
            raise StartHookError(f"{name} raised {type(error).__name__}: {error}") from error


async def _run_stop_hooks(app: Horsies) -> None:
    for hook in app.worker_stop_hooks:
        try:
            await _run_hook(hook)
        except Exception:  # user code: hooks; the others and the clean stop go on
            _logger.exception("a hook at the stop of the worker raised")


def _obey_signals(worker: Worker, signals: StopSignals) -> None:
    """The first signal drains, the second ends what runs, also when the event loop is blocked."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.call_soon_threadsafe(worker.stop)
        if signals.count > 1 and worker.loop_watch.blocked_for() > _BLOCKED_S:
            # Nobody is left to write outcomes: peers find these tasks, as after a kill.
            sys.stderr.write("horsies: the event loop is blocked, ending at once\n")
            os._exit(1)

    signals.hand_to(stop)
    signal.signal(signal.SIGUSR1, lambda _number, _frame: _logger.info("%s", worker.describe()))


def _collect_rarely() -> None:
    """Leave the imported modules out of collections, and do those less often: a tenth of a task."""
    gc.collect()
    gc.freeze()
    often, *rest = gc.get_threshold()
    if often:  # 0: the app has switched collections off
        gc.set_threshold(max(often, _OBJECTS_PER_COLLECTION), *rest)


async def _prepare(app: Horsies, signals: StopSignals) -> bool:
    """Bring the tables up to date; `False` when a signal came first."""
    loop = asyncio.get_running_loop()
    preparing = loop.create_task(_ensure_schema(app), name="prepare the database")
    signals.hand_to(lambda: loop.call_soon_threadsafe(preparing.cancel))
    await asyncio.wait([preparing])
    signals.hand_to(None)  # the worker is next; meanwhile they count
    if preparing.cancelled():
        return False
    preparing.result()
    return True


async def _ensure_schema(app: Horsies) -> None:
    database = app.get_broker().database
    resilience = app.config.resilience
    # The address may start the embedded server: not on the event loop.
    address = await asyncio.to_thread(lambda: database.address)
    connection = ServiceConnection(address, "horsies start", resilience)
    await connection.persistently("preparing the database", database.ensure_schema_async)


def _failed(error: BaseException) -> int:
    if is_transient(error):
        _logger.critical("the worker gives up: %s", error)
    else:
        _logger.critical("the worker cannot go on: %s: %s", type(error).__name__, error)
    return 1


def _concurrency(config: AppConfig, settings: WorkerConfig) -> str:
    cap = "unlimited" if config.cluster_wide_cap is None else config.cluster_wide_cap
    return (
        f"processes={settings.processes}, cluster_wide_cap={cap}, "
        f"max_claim_per_worker={settings.max_claim_per_worker or 'auto'}, "
        f"max_claim_batch={settings.max_claim_batch or 'auto'}, "
        f"concurrency={settings.concurrency}, threads={settings.thread_count}"
    )


def _print_banner(app: Horsies, worker: Worker) -> None:
    from horsies.version import __version__

    identity = worker.context.identity
    queues = ", ".join(queue.name for queue in worker.context.queues)
    names = app.list_tasks()
    shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    settings = worker.context.settings
    lines = [
        f"horsies {__version__} · {app.role} · pid {identity.pid} on {identity.hostname}",
        f"  app       {settings.app_locator or 'in this process'}",
        f"  database  {mask_url(app.get_broker().database.address.url)}",
        f"  queues    {queues}",
        f"  slots     {', '.join(f'{lane.slots} {lane.kind}' for lane in worker.lanes.all)}",
        f"  tasks     {shown or ('none' if app.resolver is None else 'by their import path')}",
    ]
    if settings.drain_timeout_s is not None:
        lines.append(
            "  drain     running tasks may finish; "
            f"interruptible ones go back after {settings.drain_timeout_s:g} s"
        )
    lines.append(f"  unknown   {_UNKNOWN[app.config.unknown_tasks]}")
    if settings.has_scheduler:
        lines.append(f"  scheduler {_scheduled(app)}")
    print("\n".join(lines), file=sys.stderr, flush=True)


def _scheduled(app: Horsies) -> str:
    schedules = app.config.schedule.schedules if app.config.schedule else []
    count = sum(schedule.enabled for schedule in schedules)
    return f"{count} schedule(s) of the app, and those added at run time"
