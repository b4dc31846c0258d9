"""The fork server: import the app once, fork one child per request, report its exit.

It has a single thread and is the parent of all children, so no other process reuses the pid of a
child before the server has reaped it: only the server can signal a child safely.
"""

import ctypes
import gc
import os
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from types import FrameType

from horsies.executors import child
from horsies.executors.base import Definitions
from horsies.executors.frames import pack

CONTROL_VARIABLE = "HORSIES_FORK_SERVER"

# Requests have a fixed size, so that the descriptors of one request never mix with the next.
REQUEST = struct.Struct("!II")
FORK = 0  # replaces the signal number; the request carries three descriptors

_PR_SET_PDEATHSIG = 1


def serve(load: Callable[[], Definitions]) -> None:
    """Serve the worker that started this process; return when the worker is gone."""
    control_number, worker_pid = os.environ.pop(CONTROL_VARIABLE).split(":")
    control = socket.socket(fileno=int(control_number))
    die_with_parent(int(worker_pid))
    _ignore_stop_signals()
    try:
        definitions = load()
    except (Exception, SystemExit):  # noqa: BLE001 - user code: the worker reports it
        control.sendall(pack("failed", traceback.format_exc()))
        raise SystemExit(1) from None
    _ignore_stop_signals()
    gc.collect()
    gc.freeze()  # children share these pages; their garbage collection must not copy them
    control.sendall(pack("ready"))
    _ForkServer(control, definitions).run()


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent dies, where the kernel supports it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def _ignore_stop_signals() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


class _ForkServer:
    def __init__(self, control: socket.socket, definitions: Definitions) -> None:
        self._control = control
        self._definitions = definitions
        self._pids: dict[int, int] = {}
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def run(self) -> None:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _do_nothing)
        while True:
            readable, _, _ = select.select([self._control.fileno(), self._wake_read], [], [])
            if self._wake_read in readable:
                os.read(self._wake_read, 4096)
                self._reap()
            if self._control.fileno() in readable and not self._handle_request():
                return

    def _handle_request(self) -> bool:
        """Carry out one request; False if the worker is gone."""
        request, files, _, _ = socket.recv_fds(self._control, REQUEST.size, 3)
        if not request:
            return False
        number, signal_number = REQUEST.unpack(request)
        if signal_number == FORK:
            self._fork(number, files)
        elif number in self._pids:
            os.kill(self._pids[number], signal_number)
        return True

    def _fork(self, number: int, files: list[int]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        server_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._run_child(server_pid, files)
        self._pids[number] = pid
        for file in files:
            os.close(file)

    def _run_child(self, server_pid: int, files: list[int]) -> None:
        try:
            die_with_parent(server_pid)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            os.close(self._wake_read)
            os.close(self._wake_write)
            child.serve(self._definitions, *files)
        except (Exception, KeyboardInterrupt):  # noqa: BLE001 - must not unwind into the server's loop
            traceback.print_exc()
        finally:
            os._exit(1)

    def _reap(self) -> None:
        for number, pid in tuple(self._pids.items()):
            ended_pid, status = os.waitpid(pid, os.WNOHANG)
            if ended_pid:
                del self._pids[number]
                self._control.sendall(pack("exited", number, status))


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Handle SIGCHLD, which only has to wake the loop."""
