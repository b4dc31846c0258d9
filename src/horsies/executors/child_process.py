"""The worker's side of one child: its socket, shared page, output and queued calls."""

import asyncio
import contextlib
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterator

import psutil
from pydantic_core import from_json

from horsies.executors.base import Call, Crashed, Delivered, Done, Progress
from horsies.executors.child import ChildSettings
from horsies.executors.frames import (
    LONG_TEXT,
    FrameReader,
    Message,
    UnreadableFrameError,
    pack,
    pack_long,
)
from horsies.executors.output import Captured, OutputFile, anonymous_file
from horsies.executors.shared_page import MAX_QUEUED, PAGE_BYTES, SharedPage


class Run:
    """One call on its way through the process executor."""

    __slots__ = (
        "call",
        "child",
        "done",
        "is_stopped",
        "is_timed_out",
        "reassignment_count",
        "sequence",
        "timer",
    )

    def __init__(self, call: Call, done: Done) -> None:
        self.call = call
        self.done = done
        self.child: ChildProcess | None = None
        self.sequence = 0
        self.reassignment_count = 0
        self.timer: asyncio.TimerHandle | None = None
        self.is_stopped = False
        self.is_timed_out = False

    def has_begun(self) -> bool:
        return self.child is not None and self.child.page.begun_sequence >= self.sequence > 0

    def set_progress(self, text: str | bytes) -> None:
        self.call.progress = Progress(*from_json(text))

    def cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class ChildProcess:
    """Reads and writes never block; one turn of the event loop sends all its writes at once."""

    def __init__(
        self,
        number: int,
        settings: ChildSettings,
        *,
        on_message: Callable[["ChildProcess", Message], None],
        on_disconnect: Callable[["ChildProcess"], None],
    ) -> None:
        self.number = number
        self.name = f"horsies-child-{number}"
        self.pid: int | None = None
        self.load = 0
        self.is_slow = False
        # None stands for a withdrawn call: the child still has to reach it and skip it.
        self._queue: deque[Run | None] = deque()
        self._sequence = 0
        self.is_leaving = False
        self.is_retiring = False
        self.is_orphan = False
        self.failure: str | None = None
        self.kill_reason: str | None = None
        self.is_distrusted = False  # what arrives from it is no longer read
        self._loop = asyncio.get_running_loop()
        self._on_message = on_message
        self._on_disconnect = on_disconnect
        self._socket, self._child_socket = socket.socketpair()
        self._socket.setblocking(False)
        self._page_file = anonymous_file(PAGE_BYTES)
        self.page = SharedPage(self._page_file)
        self._output = OutputFile(anonymous_file(), settings.max_bytes)
        self._frames = FrameReader()
        self._outgoing = bytearray()
        self._unpacked: deque[Iterator[bytes]] = deque()
        self._is_flush_due = False
        self._is_writing = False
        self._is_closed = False
        self._loop.add_reader(self._socket.fileno(), self.read)
        self.send(
            pack(
                settings.captures,
                settings.max_bytes,
                settings.max_tasks,
                settings.max_memory_mb,
                settings.echoes,
            )
        )

    @property
    def is_ready(self) -> bool:
        return self.pid is not None and not self.is_leaving

    def files(self) -> tuple[int, int, int]:
        """Return the file descriptors that the child receives."""
        return self._child_socket.fileno(), self._page_file, self._output.file

    def close_child_files(self) -> None:
        """Close our copies of the descriptors that only the child needs, once they are sent."""
        self._child_socket.close()
        os.close(self._page_file)

    @property
    def current(self) -> Run | None:
        """The call at the head of the queue; None if that call was withdrawn."""
        return self._queue[0] if self._queue else None

    @property
    def is_idle(self) -> bool:
        return self.pid is not None and not self._queue

    @property
    def has_room(self) -> bool:
        return len(self._queue) < MAX_QUEUED

    def assign(self, run: Run) -> None:
        """Queue a call; it runs after those assigned earlier."""
        self._sequence += 1
        self.load += 1
        run.child = self
        run.sequence = self._sequence
        self._queue.append(run)
        call = run.call
        fields = (
            run.sequence,
            call.task_id,
            call.task_name,
            call.attempt,
            call.args,
            call.kwargs,
            call.timeout_ms,
            call.soft_timeout_ms,
            call.slot,
            call.queue_name,
            call.traceparent,
        )
        if len(call.args or "") + len(call.kwargs or "") > LONG_TEXT:
            self._send_long(pack_long(*fields))
        else:
            self.send(pack(*fields))

    def collect_progress(self) -> None:
        """Take what the current call has reported by now from the shared page."""
        run = self.current
        if run is not None and (text := self.page.read_progress(run.sequence)) is not None:
            run.set_progress(text)

    def is_due(self, pid: int, sequence: int) -> bool:
        """Whether an answer is from this child itself and to the call at the head of its queue."""
        is_next = bool(self._queue) and sequence == self._sequence - len(self._queue) + 1
        return is_next and pid == self.pid

    def pop_answered(self, delivered: Delivered | None) -> Run | None:
        """Remove and return the call that was just answered; None if it was withdrawn."""
        run = self._queue.popleft()
        if run is not None and delivered is not None and delivered.progress is not None:
            run.set_progress(delivered.progress)
        self.load -= run is not None
        return run

    def pop_all(self) -> list[Run]:
        self.collect_progress()
        runs = [run for run in self._queue if run is not None]
        self._queue.clear()
        self.load = 0
        return runs

    def withdraw(self, run: Run) -> bool:
        """Take a call back; False if it has begun."""
        if not self.page.withdraw(run.sequence):
            return False
        self._queue[self._queue.index(run)] = None
        self.load -= 1
        run.child = None
        return True

    def withdraw_queued(self) -> list[Run]:
        """Take back all calls that the child has not begun."""
        return [run for run in tuple(self._queue) if run is not None and self.withdraw(run)]

    def send(self, frame: bytes) -> None:
        if self._unpacked:
            self._send_long(iter((frame,)))  # behind the long messages, to keep the order
            return
        self._outgoing += frame
        self._schedule_flush()

    def _send_long(self, frames: Iterator[bytes]) -> None:
        """Send a message whose frames are made only as the socket takes them."""
        self._unpacked.append(frames)
        self._schedule_flush()

    def _schedule_flush(self) -> None:
        if not self._is_flush_due and not self._is_writing:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def read(self) -> None:
        """Read everything that has arrived."""
        while not self._is_closed and not self.is_distrusted:
            try:
                received = self._socket.recv(65_536)
            except BlockingIOError:
                return
            except OSError:
                received = b""
            if not received:
                self._loop.remove_reader(self._socket.fileno())
                self._on_disconnect(self)
                return
            self._handle(received)

    def _handle(self, received: bytes) -> None:
        try:
            for message in self._frames.feed(received):
                self._on_message(self, message)
                if self.is_distrusted:
                    return
        except UnreadableFrameError:
            self._on_message(self, [])

    def memory_mb(self) -> float:
        """Return its resident memory; 0 if it is gone."""
        try:
            return float(psutil.Process(self.pid).memory_info().rss) / 1_048_576
        except psutil.Error:
            return 0.0

    def captured(self) -> Captured:
        """Return what the current call has written so far."""
        return self._output.captured()

    def close_input(self) -> None:
        """Let it exit once it has answered its queued calls."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._is_closed = True
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        self.page.close()
        os.close(self._output.file)

    def _flush(self) -> None:
        self._is_flush_due = False
        if self._is_closed:
            return
        if self._unpacked:
            self._pack_more()
        try:
            sent_count = self._socket.send(self._outgoing)
        except BlockingIOError:
            sent_count = 0
        except OSError:
            sent_count = len(self._outgoing)  # it is gone; the fork server reports its exit
        del self._outgoing[:sent_count]
        has_more = bool(self._outgoing or self._unpacked)
        if has_more is not self._is_writing:
            self._is_writing = not self._is_writing
            if self._is_writing:
                self._loop.add_writer(self._socket.fileno(), self._flush)
            else:
                self._loop.remove_writer(self._socket.fileno())

    def _pack_more(self) -> None:
        while self._unpacked and len(self._outgoing) < LONG_TEXT:
            frame = next(self._unpacked[0], None)
            if frame is None:
                self._unpacked.popleft()
            else:
                self._outgoing += frame


def describe_crash(child: ChildProcess, status: int | None) -> Crashed:
    """Describe from the wait status how a child ended without a result."""
    captured = child.captured()
    code = None if status is None else os.waitstatus_to_exitcode(status)
    if code is None:
        exit_code, signal_number, reason = None, None, "its fork server died"
    elif code < 0:
        exit_code, signal_number = None, -code
        reason = f"signal {-code} ({_signal_name(-code)})"
    else:
        exit_code, signal_number, reason = code, None, f"exit code {code}"
    if child.kill_reason is not None:
        reason = f"{child.kill_reason}; killed by {reason}"
    message = f"Worker process crashed: child {child.pid} ended without a result ({reason})"
    return Crashed(message, reason, exit_code, signal_number, captured.text, captured.is_truncated)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown signal"
