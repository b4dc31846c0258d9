"""The fork server: import the app once, fork one child per request, report its exit.

It has a single thread and is the parent of all children, so no other process reuses the pid of a
child before the server has reaped it: only the server can signal a child safely. Each child leads
a process group of its own, so that what its tasks have started can be killed with it.
"""

import contextlib
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
from horsies.executors.forked_copy import end_forked_copy
from horsies.executors.frames import pack

CONTROL_VARIABLE = "HORSIES_FORK_SERVER"

# Requests have a fixed size, so that the descriptors of one request never mix with the next.
REQUEST = struct.Struct("!II")
FORK = 0  # replaces the signal number; the request carries three descriptors

_PR_SET_PDEATHSIG = 1


def serve(load: Callable[[], Definitions]) -> None:
    """Serve the worker that started this process; return when the worker is gone."""
    control_number, worker = os.environ.pop(CONTROL_VARIABLE).split(":")
    control, worker_pid, own_pid = (
        socket.socket(fileno=int(control_number)),
        int(worker),
        os.getpid(),
    )
    die_with_parent(worker_pid)
    _ignore_stop_signals()
    try:
        definitions = load()
        end_forked_copy(own_pid)
    except (Exception, SystemExit):  # noqa: BLE001 - user code: the worker reports it
        end_forked_copy(own_pid, is_ok=False)
        control.sendall(pack("failed", traceback.format_exc()))
        raise SystemExit(1) from None
    _ignore_stop_signals()
    gc.collect()
    gc.freeze()  # children share these pages; their garbage collection must not copy them
    control.sendall(pack("ready"))
    server = _ForkServer(control, definitions, worker_pid)
    # From here on the server notices the death of the worker itself, because it has to kill what
    # the tasks have started: that does not die with its parent.
    die_with_parent(worker_pid, signal.SIGTERM)
    try:
        server.run()
    finally:
        server.kill_all()


def die_with_parent(parent_pid: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel signal this process when its parent dies, where the kernel supports it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent_pid:
        os._exit(1)


def _ignore_stop_signals() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


class _ForkServer:
    def __init__(self, control: socket.socket, definitions: Definitions, worker_pid: int) -> None:
        self._control = control
        self._definitions = definitions
        self._worker_pid = worker_pid
        self._pids: dict[int, int] = {}
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def run(self) -> None:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _do_nothing)
        signal.signal(signal.SIGTERM, _do_nothing)
        while os.getppid() == self._worker_pid:
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
            self._signal(self._pids[number], signal_number)
        return True

    def _signal(self, pid: int, signal_number: int) -> None:
        """Signal a child; SIGKILL also ends what it has started, which cannot tidy up anyway."""
        if signal_number == signal.SIGKILL:
            kill_group(pid)
        os.kill(pid, signal_number)

    def kill_all(self) -> None:
        for pid in self._pids.values():
            kill_group(pid)

    def _fork(self, number: int, files: list[int]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        server_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._run_child(server_pid, files)
        _lead_group(pid)  # here as well as in the child: whichever comes first
        self._pids[number] = pid
        for file in files:
            os.close(file)

    def _run_child(self, server_pid: int, files: list[int]) -> None:
        try:
            die_with_parent(server_pid)
            _lead_group(os.getpid())
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
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            # Before it is reaped: until then its pid, and so its group, belongs to no one else.
            if os.getpgid(pid) != os.getpgrp():
                kill_group(pid)
            _, status = os.waitpid(pid, 0)
            del self._pids[number]
            self._control.sendall(pack("exited", number, status))


def kill_group(child_pid: int) -> None:
    """Kill a child's process group: the child and whatever its tasks have started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child_pid, signal.SIGKILL)


def _lead_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.setpgid(pid, pid)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Handle SIGCHLD, and the SIGTERM at the worker's death, which only have to wake the loop."""
