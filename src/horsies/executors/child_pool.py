"""Keep a fixed number of children alive: fork them, replace them, restart the fork server."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Sequence

from horsies.executors.base import Delivered, ExecutorStartError
from horsies.executors.child import ChildSettings
from horsies.executors.child_process import ChildProcess
from horsies.executors.fork_server_client import ForkServerClient
from horsies.executors.fork_server_main import kill_group
from horsies.executors.frames import Message

logger = logging.getLogger("horsies.worker")

# How long an orphan may take to die from SIGKILL before the pool gives up on its calls.
_ORPHAN_SECONDS = 1.0
_MAX_BACKOFF_SECONDS = 30.0


class ChildPool:
    """`count` children; callbacks tell the owner when one is ready, answers or is gone."""

    on_ready: Callable[[], None]
    on_answer: Callable[[ChildProcess, Delivered | None], None]
    on_gone: Callable[[ChildProcess, int | None], None]

    def __init__(self, count: int, bootstrap: Sequence[str], settings: ChildSettings) -> None:
        self.children: dict[int, ChildProcess] = {}
        self._count = count
        self._settings = settings
        self._server = ForkServerClient(bootstrap, on_exited=self._on_exited, on_lost=self._on_lost)
        self._child_count = 0
        self._failure_count = 0
        self._is_closing = False
        self._started: asyncio.Future[None] | None = None
        self._restarting: asyncio.Task[None] | None = None
        self._is_empty = asyncio.Event()

    @property
    def server_pid(self) -> int | None:
        return self._server.pid

    def ready(self) -> list[ChildProcess]:
        return [child for child in self.children.values() if child.is_ready]

    def find(self, pid: int) -> ChildProcess | None:
        return next((child for child in self.ready() if child.pid == pid), None)

    async def start(self) -> None:
        """Import the app, fork the children and run their start hooks; raise if a step fails."""
        self._started = asyncio.get_running_loop().create_future()
        is_complete = False
        try:
            await self._server.start()
            self._refill()
            await self._started
            is_complete = True
        finally:
            self._started = None
            if not is_complete:
                await self.close(within=0)

    def signal(self, child: ChildProcess, signal_number: signal.Signals) -> None:
        self._server.signal(child.number, signal_number)

    def kill_busy(self) -> None:
        """Kill the children that have calls; idle ones exit by themselves in `close`."""
        for child in tuple(self.children.values()):
            if child.is_idle:
                continue
            if self._server.is_running:
                self.signal(child, signal.SIGKILL)
            else:
                self._remove_child(child, None)

    def stop_replacing(self) -> None:
        self._is_closing = True
        if self._restarting is not None:
            self._restarting.cancel()

    async def close(self, *, within: float) -> None:
        """Let idle children exit by themselves, then end the remaining ones."""
        self.stop_replacing()
        for child in self.children.values():
            child.close_input()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self.children:
                    self._is_empty.clear()
                    await self._is_empty.wait()
        self._server.close()
        for child in tuple(self.children.values()):
            self._remove_child(child, None)

    def _refill(self) -> None:
        """Fork children until the pool has its full size; a retiring child no longer counts."""
        if self._is_closing or not self._server.is_running:
            return
        missing_count = self._count - sum(not c.is_retiring for c in self.children.values())
        try:
            for _ in range(missing_count):
                self._add_child()
        except OSError as error:  # no memory or no file descriptor is left, for now
            if self._started is not None:
                raise
            delay = self._backoff()
            logger.error("no child process can be started, retrying in %.1f s: %s", delay, error)  # noqa: TRY400 - no bug of ours
            asyncio.get_running_loop().call_later(delay, self._refill)

    def _add_child(self) -> None:
        self._child_count += 1
        child = ChildProcess(
            self._child_count,
            self._settings,
            on_message=self._on_message,
            on_disconnect=self._on_disconnect,
        )
        self.children[child.number] = child
        self._server.fork(child.number, child.files())
        child.close_child_files()

    def _on_message(self, child: ChildProcess, message: Message) -> None:
        match message:
            case ["answer", pid, sequence, is_retiring, *fields] if child.is_due(pid, sequence):
                if is_retiring:  # replace it before it exits, so that the pool keeps its size
                    child.is_retiring = child.is_leaving = True
                    self._refill()
                self.on_answer(child, Delivered(*fields))
            case ["skipped", pid, sequence] if child.is_due(pid, sequence):
                self.on_answer(child, None)
            case ["ready", int(pid)] if child.pid is None:
                child.pid = pid
                self._failure_count = 0
                if self._started is not None and len(self.ready()) == self._count:
                    self._started.set_result(None)
                self.on_ready()
            case ["failed", str(text)]:
                child.failure = text
            case _:
                self._distrust(child)

    def _distrust(self, child: ChildProcess) -> None:
        """Kill a child whose answers cannot be told from those of somebody else."""
        logger.error("killing %s: it sent an answer that was not its own", child.name)
        child.kill_reason = "another process wrote to its connection, or an answer was out of turn"
        child.is_distrusted = child.is_leaving = True
        self.signal(child, signal.SIGKILL)

    def _on_exited(self, number: int, status: int) -> None:
        child = self.children.get(number)
        if child is not None:
            child.read()
            self._remove_child(child, status)

    def _on_disconnect(self, child: ChildProcess) -> None:
        # Without a fork server, the closed socket is the only sign that an orphan has ended.
        if child.is_orphan:
            self._remove_child(child, None)

    def _remove_child(self, child: ChildProcess, status: int | None) -> None:
        if self.children.pop(child.number, None) is None:
            return
        if child.pid is None:
            self._start_failed(child, status)
        else:
            self._refill()
        self.on_gone(child, status)
        child.close()
        if not self.children:
            self._is_empty.set()

    def _start_failed(self, child: ChildProcess, status: int | None) -> None:
        if self._is_closing:
            return
        reason = child.failure or f"{child.name} ended before it was ready (wait status {status})"
        if self._started is not None:
            if not self._started.done():
                self._started.set_exception(ExecutorStartError(reason))
            return
        delay = self._backoff()
        logger.error("a child process did not start, retrying in %.1f s: %s", delay, reason)
        asyncio.get_running_loop().call_later(delay, self._refill)

    def _backoff(self) -> float:
        self._failure_count += 1
        return min(_MAX_BACKOFF_SECONDS, 0.25 * 2.0**self._failure_count)

    def _on_lost(self) -> None:
        """Kill the children of the dead fork server, in case the kernel did not, and restart."""
        logger.error("the fork server died; replacing its children")
        loop = asyncio.get_running_loop()
        for child in tuple(self.children.values()):
            child.is_orphan = child.is_leaving = True
            if child.pid is not None:
                kill_group(child.pid)
            child.read()
            loop.call_later(_ORPHAN_SECONDS, self._remove_child, child, None)
        if self._started is not None and not self._started.done():
            self._started.set_exception(ExecutorStartError("the fork server died"))
        elif not self._is_closing:
            self._restarting = loop.create_task(self._restart(), name="horsies-fork-server")

    async def _restart(self) -> None:
        while not self._server.is_running:
            try:
                await self._server.start()
            except (ExecutorStartError, OSError) as error:
                self._server.close()
                delay = self._backoff()
                logger.warning(
                    "the fork server did not start, retrying in %.1f s: %s", delay, error
                )
                await asyncio.sleep(delay)
        self._refill()
