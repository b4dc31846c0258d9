"""The main loop of a child: read calls from the socket, run them one by one, answer each."""

import asyncio
import contextlib
import faulthandler
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import Any

import psutil
from pydantic_core import to_json

from horsies.clock import monotonic
from horsies.executors import attempt
from horsies.executors.base import (
    Call,
    Definitions,
    Delivered,
    Interrupted,
    Progress,
    SoftTimeout,
)
from horsies.executors.current import Running
from horsies.executors.forked_copy import end_forked_copies_of, end_forked_copy
from horsies.executors.frames import LONG_TEXT, FrameReader, Message, pack, pack_long
from horsies.executors.host import Host
from horsies.executors.log_records import add_tasks_to_records
from horsies.executors.output import NOTHING, OutputFile
from horsies.executors.shared_page import SharedPage
from horsies.observability.logs import log_as_parent
from horsies.tasks.definition import TaskDefinition

BEAT_SECONDS = 0.5

# The signals whose handlers are ours between two tasks; plain integers, which compare quickly.
_SIGNALS = tuple(map(int, (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGCHLD)))
# The wrapper in `signal` looks each handler up in an enum, which doubled the cost of a short call.
_get_signal: Callable[[int], object] = import_module("_signal").getsignal


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """The settings that the worker sends to a child before its first call."""

    captures: bool
    max_bytes: int
    max_tasks: int
    max_memory_mb: int
    echoes: bool = False


def serve(definitions: Definitions, socket_file: int, page_file: int, output_file: int) -> None:
    """Serve calls until the worker closes the socket, a limit is reached or SIGTERM arrives."""
    connection = socket.socket(fileno=socket_file)
    connection.setblocking(True)
    frames = _frames(connection)
    settings = ChildSettings(*next(frames))
    child = _Child(definitions, connection, SharedPage(page_file), settings, output_file)
    if child.prepare():
        child.run(frames)
        definitions.finish()
    # A child that was not killed leaves its process group first: what successful tasks have left
    # running is then left alone, see `fork_server_main`.
    os.setpgid(0, os.getpgid(os.getppid()))
    os._exit(0)  # skips atexit hooks: those of the fork server must not run here


def _frames(connection: socket.socket) -> Iterator[Message]:
    reader = FrameReader()
    while received := connection.recv(262_144):
        yield from reader.feed(received)


class _Child:
    def __init__(
        self,
        definitions: Definitions,
        connection: socket.socket,
        page: SharedPage,
        settings: ChildSettings,
        output_file: int,
    ) -> None:
        self._definitions = definitions
        self._connection = connection
        self._page = page
        self._settings = settings
        self._output = OutputFile(output_file, settings.max_bytes)
        self._host = Host(definitions)
        self._pid = os.getpid()
        self._served_count = 0
        self._is_answering = False
        self._is_in_function = False
        self._is_terminated = False
        self._ignored_stop_sequence = 0
        self._soft_limit_at: float | None = None
        self._progress: bytes | None = None
        self._progress_lock = threading.Lock()
        self._handlers: tuple[Any, ...] = (
            self._on_terminate,
            int(signal.SIG_IGN),
            self._on_soft_limit,
            int(signal.SIG_DFL),
        )
        self._runner: asyncio.Runner | None = None
        self._task: asyncio.Task[object] | None = None

    def prepare(self) -> bool:
        """Run the start hooks and report ready; False if a hook failed."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            for hook in self._definitions.start_hooks:
                hook()
                end_forked_copy(self._pid)
        except (Exception, SystemExit):  # noqa: BLE001 - user code: the worker decides what to do
            end_forked_copy(self._pid, is_ok=False)
            self._connection.sendall(pack("failed", traceback.format_exc()))
            return False
        if self._settings.captures:
            self._output.redirect_standard_streams(echoes=self._settings.echoes)
        else:
            log_as_parent()
        add_tasks_to_records()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            faulthandler.enable()
        self._page.beat_at = monotonic()
        threading.Thread(target=self._beat, name="horsies-beat", daemon=True).start()
        self._restore_signals()
        self._connection.sendall(pack("ready", self._pid))
        return True

    def run(self, frames: Iterator[Message]) -> None:
        try:
            for sequence, *fields in frames:
                if self._serve(sequence, Call(*fields)):
                    return
        except Interrupted:
            self._terminate()

    def _serve(self, sequence: int, call: Call) -> bool:
        """Run one call and answer it; True if this child should be replaced."""
        # Begin before checking for a skip: a stop that arrives in between then has a call to end.
        self._page.begin(sequence, monotonic())
        if self._page.should_skip(sequence):
            self._connection.sendall(pack("skipped", self._pid, sequence))
            return False
        definition = self._definitions.get(call.task_name)
        delivered = self._attempt(definition, call)
        self._is_answering = True
        self._restore_signals()
        delivered = self._with_progress(delivered)
        captured = self._output.take() if self._settings.captures else NOTHING
        if self._is_terminated:
            self._terminate()
        if captured.text is not None:
            delivered = delivered._replace(log=captured.text, log_truncated=captured.is_truncated)
        self._served_count += 1
        is_retiring = self._should_retire()
        self._answer(sequence, delivered, is_retiring=is_retiring)
        self._is_answering = False
        if self._is_terminated:
            self._terminate()
        return is_retiring

    def is_ending(self) -> bool:
        """Whether the worker wants the current call to end."""
        return self._is_terminated or self._page.stop_sequence == self._page.begun_sequence

    def report(self, progress: Progress) -> None:
        """Put it where the worker looks now and then; the answer carries the last one."""
        text = to_json(progress)
        with self._progress_lock:
            self._page.write_progress(self._page.begun_sequence, text)
            self._progress = text

    def _with_progress(self, delivered: Delivered) -> Delivered:
        progress, self._progress = self._progress, None
        return delivered if progress is None else delivered._replace(progress=progress.decode())

    def _answer(self, sequence: int, delivered: Delivered, *, is_retiring: bool) -> None:
        """Answer a call; the worker believes only this process, and only in the calls' order."""
        pid = os.getpid()
        if len(delivered.result) + len(delivered.log or "") <= LONG_TEXT:
            self._connection.sendall(pack("answer", pid, sequence, is_retiring, *delivered))
            return
        for frame in pack_long("answer", pid, sequence, is_retiring, *delivered):
            self._connection.sendall(frame)

    def _attempt(self, definition: TaskDefinition | None, call: Call) -> Delivered:
        if definition is not None and definition.is_coroutine:
            return self._attempt_coroutine(definition, call)
        try:
            self._is_in_function = True
            return attempt.run(definition, _ChildRun(call, self), self._host)
        except SoftTimeout as error:  # it arrived after the function, while encoding the result
            return attempt.from_exception(definition, call, error)
        finally:
            self._is_answering = True
            self._is_in_function = False
            if call.soft_timeout_ms is not None:
                self._soft_limit_at = None
                signal.setitimer(signal.ITIMER_REAL, 0)

    def start_soft_limit(self, seconds: float) -> None:
        self._soft_limit_at = monotonic() + seconds
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _attempt_coroutine(self, definition: TaskDefinition, call: Call) -> Delivered:
        if self._runner is None:
            self._runner = asyncio.Runner()
            end_forked_copies_of(self._runner.get_loop())
        try:
            return self._runner.run(self._coroutine(definition, call))
        except asyncio.CancelledError as error:
            if self._is_terminated:
                raise Interrupted from None
            return attempt.from_exception(definition, call, error)
        finally:
            self._task = None

    async def _coroutine(self, definition: TaskDefinition, call: Call) -> Delivered:
        self._task = asyncio.current_task()
        return await attempt.run_async(definition, _ChildRun(call, self), self._host)

    def _restore_signals(self) -> None:
        """Set our signal handlers again where a task has replaced them."""
        if tuple(map(_get_signal, _SIGNALS)) != self._handlers:
            for number, handler in zip(_SIGNALS, self._handlers, strict=True):
                signal.signal(number, handler)

    def _should_retire(self) -> bool:
        settings = self._settings
        if 0 < settings.max_tasks <= self._served_count:
            return True
        if settings.max_memory_mb <= 0:
            return False
        return int(psutil.Process().memory_info().rss) > settings.max_memory_mb * 1_048_576

    def _on_terminate(self, _number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            self._terminate()  # a copy that user code forked: the signal is meant for it
        meant_for = self._page.stop_sequence
        is_late = meant_for != self._page.begun_sequence or self._is_answering
        if is_late and meant_for != self._ignored_stop_sequence:
            # The worker meant a call that has ended in the meantime, so the next one goes on. The
            # worker signals once per call: a second SIGTERM comes from outside and ends the child.
            self._ignored_stop_sequence = meant_for
            return
        self._is_terminated = True
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        elif self._is_in_function:
            raise Interrupted
        elif not self._is_answering:
            self._terminate()

    def _on_soft_limit(self, _number: int, _frame: FrameType | None) -> None:
        # An alarm that an earlier task has set means nobody here.
        is_due = self._soft_limit_at is not None and monotonic() >= self._soft_limit_at
        if self._is_in_function and is_due:
            raise SoftTimeout("soft time limit reached")

    def _terminate(self) -> None:
        """Die from SIGTERM itself, so that the wait status shows the signal."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

    def _beat(self) -> None:
        """Beat from a separate thread; exit if the parent died and the kernel did not kill us."""
        server_pid = os.getppid()
        while os.getppid() == server_pid:
            self._page.beat_at = monotonic()
            self._output.echo()
            self._output.release_surplus()
            time.sleep(BEAT_SECONDS)
        os.killpg(0, signal.SIGKILL)


class _ChildRun(Running):
    """The call that a child runs."""

    __slots__ = ("_child",)

    def __init__(self, call: Call, child: _Child) -> None:
        super().__init__(call)
        self._child = child

    def is_ending(self) -> bool:
        return self._child.is_ending()

    def start_soft_limit(self) -> None:
        if self.call.soft_timeout_ms is not None:
            self._child.start_soft_limit(self.call.soft_timeout_ms / 1000)

    def report(self, progress: Progress) -> None:
        self._child.report(progress)
