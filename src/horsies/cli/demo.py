"""`horsies demo`: run a worker and a few hundred tasks, through the public API only."""

import asyncio
import contextlib
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, STDOUT, Process
from collections.abc import AsyncGenerator, Generator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from horsies import (
    Err,
    Horsies,
    RetrievalCode,
    TaskFunction,
    TaskHandle,
    TaskInfo,
    TaskSendResult,
    embedded_postgres,
)
from horsies.cli import demo_report
from horsies.cli.demo_report import Story
from horsies.ids import new_id

_START_S = 30
_FINISH_S = 60
_LOG_TAIL_LINES = 15
_PLACES = {"async": "event loop", "process": "child process", "blocking": "thread"}
T = TypeVar("T")
Groups = Mapping[str, list[TaskHandle[Any]]]  # the tasks return values of several types


class DemoFailedError(click.ClickException):
    """The demo did not work as promised."""


@click.command("demo")
@click.option("--web", "is_web", is_flag=True, help="Show the dashboard of a busy shop instead.")
@click.option("--port", type=click.IntRange(0, 65535), default=8600, show_default=True)
def command(port: int, *, is_web: bool) -> None:
    """Start a worker, send a few hundred tasks and show what happens.

    Uses the embedded PostgreSQL, or the one that HORSIES_DATABASE_URL names. Takes a few seconds,
    ends by itself and leaves nothing running. Its tasks use their own queue, `horsies_demo`.

    With --web it runs until Ctrl-C, on a PostgreSQL of its own that is deleted afterwards.
    """
    if is_web:
        from horsies.cli import demo_web

        demo_web.run(port)
        return
    # Imported late: without a database, this import raises an error that says what to do.
    from horsies.cli.demo_app import app

    console = Console(highlight=False)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _database(app, console):
            story = asyncio.run(_run(app, console))
    except KeyboardInterrupt:
        console.print("\nStopped. Demo tasks that did not run expire within five minutes.")
        raise
    demo_report.print_summary(console, story)
    if problems := story.problems():
        raise DemoFailedError("the demo saw unexpected results: " + "; ".join(problems))
    demo_report.print_next_steps(console, is_embedded=app.config.broker.is_embedded)


@contextlib.contextmanager
def _database(app: Horsies, console: Console) -> Generator[None]:
    """Provide the database; afterwards, stop the embedded server unless others use it."""
    with contextlib.ExitStack() as afterwards:
        if app.config.broker.is_embedded:
            if not embedded_postgres.status().is_running:
                afterwards.callback(_await_end_of_server)
            with console.status("Starting an embedded PostgreSQL"):
                server = embedded_postgres.acquire(idle_timeout=0, quiet=True)
            afterwards.callback(server.release)
        answer = app.ping_database(timeout_ms=5_000)
        if isinstance(answer, Err):
            cure = (
                "check HORSIES_DATABASE_URL or DATABASE_URL; unset both to use the embedded server"
            )
            raise DemoFailedError(f"{answer.err_value.message}\n{cure}")
        ping = answer.ok_value
        console.print(f"PostgreSQL {ping.server_version} answers in {ping.round_trip_ms:.1f} ms")
        yield


def _await_end_of_server() -> None:
    for _ in range(50):
        if not embedded_postgres.status().is_running:
            return
        time.sleep(0.1)


async def _run(app: Horsies, console: Console) -> Story:
    with tempfile.TemporaryDirectory(prefix="horsies-demo-") as directory:
        log = Path(directory, "worker.log")
        try:
            async with _worker(log) as process, _failing_with(process):
                await _until_ready(app, process, console)
                return await _send_and_watch(app, console)
        except* DemoFailedError as group:
            failure = group.exceptions[0]
        finally:
            await app.get_broker().close_async()
        raise DemoFailedError(f"{failure}\nThe end of the worker's log:\n{_tail(log)}") from failure


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])


@contextlib.asynccontextmanager
async def _worker(log: Path) -> AsyncGenerator[Process]:
    """Run a real worker in its own session, so that Ctrl-C reaches only us and we stop it."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "horsies.cli.main"),
            *("worker", "horsies.cli.demo_app:app", "--processes", "2"),
            stdin=DEVNULL,
            stdout=output,
            stderr=STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), timeout=15)
        except TimeoutError:
            process.kill()
            await process.wait()


@contextlib.asynccontextmanager
async def _failing_with(process: Process) -> AsyncGenerator[None]:
    """Make the block fail if the worker exits before the block ends."""

    async def watch() -> None:
        raise DemoFailedError(f"the worker exited with code {await process.wait()}")

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch(), name="watch worker")
        yield
        watching.cancel()


async def _until_ready(app: Horsies, process: Process, console: Console) -> None:
    deadline = time.monotonic() + _START_S
    with console.status("Starting a worker"):
        while time.monotonic() < deadline:
            pongs = await app.ping_workers_async(timeout_ms=200)
            if any(pong.pid == process.pid for pong in pongs.unwrap_or([])):
                console.print(f"Worker with process id {process.pid} is ready")
                return
    raise DemoFailedError(f"the worker did not answer within {_START_S} s")


async def _send_and_watch(app: Horsies, console: Console) -> Story:
    groups = await _send()
    places = {name: _PLACES[app.tasks[name].definition.execution] for name in groups}
    count = sum(map(len, groups.values()))
    console.print(f"Sent {count} tasks, some of which are made to fail\n")
    progress = Progress(
        TextColumn("{task.description:<15}"),
        TextColumn("{task.fields[place]:<13}", style="dim"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failures]}", style="red"),
        console=console,
    )
    with progress:
        async with asyncio.TaskGroup() as group:
            for name, handles in groups.items():
                bar = progress.add_task(name, total=len(handles), place=places[name], failures="")
                for handle in handles:
                    group.create_task(_watch(handle, progress, bar), name=handle.task_id)
    return Story(await asyncio.to_thread(_read, groups), places)


async def _send() -> Groups:
    """Send tasks in bulk, one by one, with a delay, and one whose unique key is taken."""
    from horsies.cli import demo_app as tasks

    # The tasks expire, so that the next demo does not run those of an interrupted one.
    until = datetime.now(UTC) + timedelta(minutes=5)
    up_at = datetime.now(UTC) + timedelta(seconds=0.5)
    calls: dict[TaskFunction[..., Any], list[tuple[object, ...]]] = {
        tasks.fetch_price: [(item,) for item in range(200)],
        tasks.make_thumbnail: [(image,) for image in range(150)],
        tasks.write_receipt: [(order,) for order in range(100)],
        tasks.ask_partner: [(order, up_at) for order in range(20)],
        tasks.charge_card: [(order, 4_200) for order in range(5)],
        tasks.crash_child: [() for _ in range(3)],
    }
    groups = {
        task.task_name: _sent(await task.with_options(good_until=until).send_many_async(rows))
        for task, rows in calls.items()
    }
    later = tasks.send_reminder.with_options(good_until=until, delay=2, unique_key=new_id())
    first, second = _sent(await later.send_async(7)), _sent(await later.send_async(7))
    if second.created or second.task_id != first.task_id:
        raise DemoFailedError("two tasks were stored with the same unique key")
    return groups | {tasks.send_reminder.task_name: [first]}


def _sent(result: TaskSendResult[T]) -> T:
    if isinstance(result, Err):
        raise DemoFailedError(f"a send was refused: {result.err_value.message}")
    return result.ok_value


async def _watch(handle: TaskHandle[Any], progress: Progress, bar: TaskID) -> None:
    result = await handle.get_async(timeout_ms=_FINISH_S * 1000)
    if result.is_err() and isinstance(result.err_value.error_code, RetrievalCode):
        raise DemoFailedError(f"task {handle.task_id}: {result.err_value.message}")
    progress.advance(bar)
    if result.is_err():
        failed = progress.tasks[bar].fields.get("failed", 0) + 1
        progress.update(bar, failed=failed, failures=f"{failed} failed")


def _read(groups: Groups) -> dict[str, list[TaskInfo]]:
    """Read the stored rows, which contain the times for the report."""
    rows: dict[str, list[TaskInfo]] = {}
    for name, handles in groups.items():
        rows[name] = []
        for handle in handles:
            info = handle.info(include_result=True, include_attempts=True)
            if isinstance(info, Err) or info.ok_value is None:
                raise DemoFailedError(f"task {handle.task_id} cannot be read: {info}")
            rows[name].append(info.ok_value)
    return rows
