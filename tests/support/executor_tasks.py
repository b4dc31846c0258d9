"""Tasks for the executor tests: the good, the slow, the deadly."""

import asyncio
import atexit
import ctypes
import locale
import logging
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from inspect import isfunction
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from horsies.config import AppConfig, PostgresConfig
from horsies.executors.base import Interrupted, SoftTimeout
from horsies.executors.current import current_task
from horsies.executors.middleware import Middleware
from horsies.tasks.definition import TaskDefinition, define_task


def no_op() -> None:
    pass


async def async_no_op() -> None:
    pass


def add(a: int, b: int) -> int:
    return a + b


def fail() -> None:
    raise LookupError("no horse here")


def interrupt() -> None:
    raise KeyboardInterrupt


async def async_interrupt() -> None:
    raise KeyboardInterrupt


def leave(code: int) -> None:
    os._exit(code)


def exit_system() -> None:
    raise SystemExit(3)


def segfault() -> None:
    ctypes.string_at(0)


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def pid() -> int:
    return os.getpid()


def environment(name: str) -> str | None:
    return os.environ.get(name)


def directory() -> str:
    return str(Path.cwd())


def echo(text: str) -> str:
    return text


def note(path: str) -> None:
    """Leave a mark for each time this ran."""
    with Path(path).open("a") as file:
        file.write("ran\n")


def note_slowly(path: str, milliseconds: int) -> None:
    note(path)
    time.sleep(milliseconds / 1000)


def hold(begun: str, release: str) -> str:
    """Say that we began, then wait until we may end."""
    note(begun)
    while not Path(release).exists():
        time.sleep(0.01)
    return "released"


def hold_then_leave(begun: str, release: str) -> None:
    hold(begun, release)
    os._exit(7)


def forever(begun: str, tidied: str | None = None) -> None:
    try:
        note(begun)  # inside: from here on the interruption may come
        while True:
            time.sleep(0.01)
    finally:
        if tidied is not None:
            note(tidied)


def stubborn(begun: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    forever(begun)


def swallow(begun: str) -> str:
    """Catch whatever ends us and return late."""
    try:
        forever(begun)
    except BaseException:
        return "swallowed"
    return "never"


def spin(value: str) -> str:
    """An argument that takes longer to be read than the soft limits of these tests."""
    ends_at = time.monotonic() + 0.3
    while time.monotonic() < ends_at:
        pass
    return value


def read_slowly(begun: Annotated[str, BeforeValidator(spin)]) -> str:
    return soft(begun)


def soft(begun: str) -> str:
    try:
        forever(begun)
    except SoftTimeout:
        return "tidied up"
    return "never"


def write(out: str, err: str, log: str) -> None:
    print(out)
    print(err, file=sys.stderr)
    logging.getLogger("stable").info(log)


def write_and_hold(text: str, begun: str) -> None:
    sys.stdout.write(text)
    os.write(2, b"straight to the descriptor\n")
    forever(begun)


def lose_standard_output(to: str | None) -> None:
    for number in (1, 2):
        os.close(number)
    if to is not None:
        for number in (1, 2):
            assert os.open(to, os.O_WRONLY) == number


def write_much(lines: int) -> None:
    for number in range(lines):
        print(f"line {number:08d}")


def grow(megabytes: int) -> int:
    globals()["grown"] = bytearray(os.urandom(1_048_576) * megabytes)
    return os.getpid()


def grow_and_stay(begun: str, megabytes: int) -> None:
    grow(megabytes)
    note(begun)
    time.sleep(60)


def hog(begun: str, release: str) -> None:
    """Keep the interpreter lock: a child that shows no life although it runs."""
    note(begun)
    ctypes.PyDLL(None).sleep(30)


def log_what_cannot_be_stored() -> None:
    logging.getLogger("stable").warning("one\x00 \udc80 line")


async def async_add(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


async def async_log(text: str) -> None:
    await asyncio.sleep(0)
    logging.getLogger("stable").warning(text)


async def async_fail() -> None:
    raise LookupError("no horse here")


async def async_exit() -> None:
    raise SystemExit(3)


async def async_cancel_itself() -> None:
    raise asyncio.CancelledError


async def async_forever(begun: str, tidied: str | None = None) -> None:
    note(begun)
    try:
        await asyncio.Event().wait()
    finally:
        if tidied is not None:
            note(tidied)


async def async_hold(begun: str, release: str) -> str:
    note(begun)
    while not Path(release).exists():
        await asyncio.sleep(0.01)
    return "released"


async def async_swallow(begun: str) -> str:
    try:
        await async_forever(begun)
    except asyncio.CancelledError:
        return "swallowed"
    return "never"


async def async_stubborn(begun: str, release: str) -> str:
    note(begun)
    while not Path(release).exists():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            continue
    return "late"


async def async_soft(begun: str) -> str:
    try:
        await async_forever(begun)
    except SoftTimeout:
        return "tidied up"
    return "never"


async def async_soft_group(begun: str, tidied: str) -> str:
    """At the soft limit also what a group has started must be ended."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(async_forever(begun, tidied))
    except SoftTimeout:
        return "tidied up"
    return "never"


def _wait_as_a_copy(copy: str, gate: str) -> None:
    """What a forked copy does: say who it is and wait until it may leave user code."""
    Path(copy).write_text(str(os.getpid()))
    atexit.register(note, f"{copy}.exit_hook")
    while not Path(gate).exists():
        time.sleep(0.01)


def fork_and_leave(how: str, copy: str, gate: str) -> str:
    """Two processes leave this function, and only one of them was asked for it."""
    if os.fork() == 0:
        _wait_as_a_copy(copy, gate)
        if how == "value":
            return "copy"
        raise {"exception": LookupError, "exit": SystemExit, "interrupted": Interrupted}[how]
    return "original"


async def async_fork_and_leave(how: str, copy: str, gate: str) -> str:
    return fork_and_leave(how, copy, gate)


async def async_fork_and_wait(copy: str, gate: str) -> str:
    """The copy comes back to the event loop with other coroutines in it."""
    if os.fork() == 0:
        _wait_as_a_copy(copy, gate)
        await asyncio.sleep(0)
        note(f"{copy}.went_on")
        return "copy"
    return "original"


async def async_note_pids(path: str, release: str) -> str:
    while not Path(release).exists():
        with Path(path).open("a") as file:
            file.write(f"{os.getpid()}\n")
        await asyncio.sleep(0)
    return "released"


def use_other_processes() -> list[str]:
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        power = pool.submit(pow, 2, 5).result()
    with context.Pool(1) as workers:
        length = workers.apply(len, ("horse",))
    run = subprocess.run(["echo", "neigh"], capture_output=True, check=True, text=True)
    return [str(power), str(length), run.stdout.strip()]


async def async_use_other_processes() -> list[str]:
    return use_other_processes()


def terminate_another_process(begun: str) -> int | None:
    """What SIGTERM does to a process of multiprocessing."""
    process = multiprocessing.get_context("fork").Process(target=forever, args=(begun,))
    process.start()
    while not Path(begun).exists():
        time.sleep(0.01)
    process.terminate()
    process.join()
    return process.exitcode


def scribble(text: str) -> None:
    """Write to the connections of this process as if they were ours."""
    for file in range(3, 100):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(file).st_mode):
                os.write(file, text.encode("latin-1"))
    time.sleep(60)


def start_sleeper(path: str) -> int:
    """Leave a process running and say which."""
    sleeper = subprocess.Popen(["sleep", "1000"])
    sleeper.returncode = 0  # nobody waits for it
    Path(f"{path}.part").write_text(str(sleeper.pid))
    Path(f"{path}.part").rename(path)
    return os.getpid()


def start_sleeper_and_stay(path: str, how: str) -> None:
    start_sleeper(path)
    if how == "leave":
        os._exit(0)
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(0.01)


class _HostileError(Exception):
    """An exception whose own methods raise something worse."""

    def __init__(self, method: str, error: str) -> None:
        super().__init__()
        self._method, self._error = method, error

    def _raise(self, method: str) -> None:
        if self._method == method:
            raise {
                "SystemExit": SystemExit,
                "KeyboardInterrupt": KeyboardInterrupt,
                "LookupError": LookupError,
            }[self._error]

    def __str__(self) -> str:
        self._raise("__str__")
        return "hostile"

    def __repr__(self) -> str:
        self._raise("__repr__")
        return "hostile"

    @property
    def __class__(self) -> type:  # type: ignore[override]
        self._raise("__class__")
        return _HostileError


def raise_hostile(method: str, error: str) -> None:
    raise _HostileError(method, error)


async def async_raise_hostile(method: str, error: str) -> None:
    raise _HostileError(method, error)


def return_hostile(method: str, error: str) -> Any:
    return _HostileError(method, error)


async def async_generator_exit() -> None:
    raise GeneratorExit


async def async_stop_loop() -> str:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    return "stopped"


async def async_cancel_current_and_return() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "cancelled"


async def async_cancel_current_and_wait() -> None:
    await async_cancel_current_and_return()
    await asyncio.sleep(60)


async def async_cancel_all() -> int:
    """Cancel every task of the loop that can be found."""
    tasks = asyncio.all_tasks()
    for task in tasks:
        task.cancel()
    return len(tasks)


async def async_set_context(value: str) -> None:
    _context.set(value)


async def async_get_context() -> str | None:
    return _context.get()


_context: ContextVar[str | None] = ContextVar("context", default=None)


def set_tracing() -> None:
    sys.settrace(lambda *_: None)
    sys.setprofile(lambda *_: None)


def set_deadly_tracing() -> None:
    def trace(*_: object) -> None:
        raise SystemExit

    sys.setprofile(trace)


def set_tracing_and_hold(begun: str, tidied: str | None = None) -> None:
    set_tracing()
    forever(begun, tidied)


async def async_set_tracing() -> None:
    set_tracing()


def get_tracing() -> list[bool]:
    return [sys.gettrace() is not None, sys.getprofile() is not None]


async def async_get_tracing() -> list[bool]:
    return get_tracing()


def change_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def set_alarm() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.05)


def outlast_alarm() -> str:
    """Long enough for an alarm of the task before."""
    time.sleep(0.2)
    return "alive"


def change_process() -> None:
    os.chdir("/")
    os.environ.clear()
    locale.setlocale(locale.LC_ALL, "C")
    sys.path.clear()
    threading.excepthook = sys.exit
    sys.excepthook = sys.exit
    atexit.register(sys.exit, 3)


def raise_in_a_thread() -> None:
    threading.excepthook = sys.exit
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


def replace_streams(how: str) -> None:
    if how == "none":
        sys.stdout = sys.stderr = None
    else:
        sys.stdout.close()
        sys.stderr.close()


def see() -> dict[str, Any]:
    task = current_task()
    return {
        "id": task.id,
        "name": task.name,
        "attempt": task.attempt,
        "queue": task.queue,
        "worker_id": task.worker_id,
        "deadline": task.deadline and task.deadline.isoformat(),
        "is_cancel_requested": task.is_cancel_requested,
    }


async def see_async() -> dict[str, Any]:
    return see()


def report(done: float, total: float, note: str) -> None:
    for step in range(1000):
        current_task().progress(step)
    current_task().progress(done, total, note)


def report_and_hang() -> None:
    current_task().progress(1, 2)
    while True:
        with suppress(Interrupted):
            time.sleep(60)


def tell_of_cancel(path: str) -> None:
    try:
        Path(path).touch()
        while True:
            time.sleep(0.01)
    except Interrupted:
        Path(path).write_text(str(current_task().is_cancel_requested))
        raise


async def tell_of_cancel_async(path: str) -> None:
    try:
        Path(path).touch()
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        Path(path).write_text(str(current_task().is_cancel_requested))
        raise


def close_files(first: int) -> None:
    os.closerange(first, 1024)


class TestDefinitions:
    """What a bootstrap's load() gives: every function above is a task."""

    __test__ = False

    def __init__(self, *start_hooks: Callable[[], None]) -> None:
        self.start_hooks = start_hooks
        self.begun = None
        self.worker_id = "worker-1"
        self.middleware = Middleware()
        broker = PostgresConfig(database_url="postgresql://nobody@localhost/nothing")
        config = AppConfig(broker=broker, allow_plain_returns=True)
        self._definitions = {
            name: define_task(value, name, config=config)
            for name, value in globals().items()
            if isfunction(value) and value.__module__ == __name__ and name[0] != "_"
        }

    def finish(self) -> None: ...

    def get(self, name: str, /) -> TaskDefinition | None:
        return self._definitions.get(name)
