"""The worker's side of the fork server: start it, request children, learn of their exits."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from horsies.executors.base import ExecutorStartError
from horsies.executors.fork_server_main import CONTROL_VARIABLE, FORK, REQUEST
from horsies.executors.frames import FrameReader

START_SECONDS = 120.0
# How long a fork server may take to kill its children and exit.
_EXIT_SECONDS = 2.0


class ForkServerClient:
    """One process that has imported the app; `on_lost` is called when it dies unexpectedly."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        on_exited: Callable[[int, int], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._argv = argv
        # As they are now: a task in the worker may change both before the server has to restart.
        self._environment = dict(os.environ)
        self._directory = Path.cwd()
        self._on_exited = on_exited
        self._on_lost = on_lost
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._is_ready = False

    @property
    def is_running(self) -> bool:
        return self._control is not None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start it and wait until it has imported the app; raise ExecutorStartError if it fails."""
        loop = asyncio.get_running_loop()
        self._ready, self._is_ready = loop.create_future(), False
        self._control, server_socket = socket.socketpair()
        environment = {
            **self._environment,
            "HORSIES_CHILD_PROCESS": "1",
            CONTROL_VARIABLE: f"{server_socket.fileno()}:{os.getpid()}",
        }
        with server_socket:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - returns once the program is loaded
                self._argv,
                pass_fds=[server_socket.fileno()],
                env=environment,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
            )
        self._frames = FrameReader()
        loop.add_reader(self._control.fileno(), self._read)
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._ready
            self._is_ready = True
        except TimeoutError:
            raise ExecutorStartError(
                f"the fork server was not ready within {START_SECONDS:.0f} s"
            ) from None
        finally:
            self._ready = None

    def fork(self, number: int, files: Sequence[int]) -> None:
        """Request a child; `number` identifies it, and it receives these descriptors."""
        if self._control is not None:
            socket.send_fds(self._control, [REQUEST.pack(number, FORK)], files)

    def signal(self, number: int, signal_number: signal.Signals) -> None:
        """Signal a child; do nothing if it has exited."""
        if self._control is not None:
            self._control.sendall(REQUEST.pack(number, signal_number))

    def close(self) -> None:
        """End the fork server and its remaining children."""
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control.fileno())
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)  # also if a forked copy of us holds it
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                # While it still loads the app it has no children, and may take long.
                self._process.wait(_EXIT_SECONDS if self._is_ready else 0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _read(self) -> None:
        if self._control is None:
            return
        try:
            received = self._control.recv(65_536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except ConnectionError:
            received = b""
        if not received:
            self._on_disconnect()
            return
        for message in self._frames.feed(received):
            match message:
                case ["exited", int(number), int(status)]:
                    self._on_exited(number, status)
                case ["failed", str(text)] if self._ready is not None:
                    self._ready.set_exception(ExecutorStartError(text))
                case _:
                    if self._ready is not None:
                        self._ready.set_result(None)

    def _on_disconnect(self) -> None:
        self.close()
        if self._ready is None:
            self._on_lost()
        elif not self._ready.done():
            code = None if self._process is None else self._process.returncode
            self._ready.set_exception(
                ExecutorStartError(f"the fork server ended early (exit code {code})")
            )
