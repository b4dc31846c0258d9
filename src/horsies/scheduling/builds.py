"""Builds the workflows of schedules. `build_with` is user code: it runs in a thread, outside any
transaction, and however slow it is, it delays only its own schedule.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from horsies.clock import monotonic
from horsies.config.schedules import WorkflowSchedule
from horsies.database.operation import describe
from horsies.errors import HorsiesError
from horsies.scheduling.sending import ScheduleSendingApp, build_workflow
from horsies.workflows.spec import WorkflowSpec

# A build is reported when it has taken this long. Threads cannot be ended: it goes on, and what it
# gives in the end is used.
LIMIT_S = 10.0
# For so long a pass waits for slow builds, all together. Most are ready within milliseconds.
_PATIENCE_S = 0.25
_MAX_THREADS = 16
_MAX_BACKOFF_S = 60.0


@dataclass(frozen=True, slots=True)
class BuildFailure:
    """Why there is no workflow to start."""

    reason: str


@dataclass(slots=True)
class _Build:
    schedule: WorkflowSchedule
    started_at: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    spec: WorkflowSpec[Any] | None = None
    error: Exception | None = None
    is_reported: bool = False


class Builds:
    """The builds under way, at most one of each schedule. `when_ended` is called after each."""

    def __init__(self, app: ScheduleSendingApp) -> None:
        self._app = app
        self._builds: dict[str, _Build] = {}
        self._failures: dict[str, int] = {}
        self._retry_at: dict[str, float] = {}
        self._patience_s = _PATIENCE_S
        self.when_ended: Callable[[], None] = lambda: None

    def begin_pass(self) -> None:
        self._patience_s = _PATIENCE_S

    @property
    def are_under_way(self) -> bool:
        """Whether a build has begun that was not yet taken."""
        return bool(self._builds)

    async def take(self, schedule: WorkflowSchedule) -> WorkflowSpec[Any] | BuildFailure | None:
        """The workflow of a schedule, or why there is none; None if it is not ready yet."""
        name = schedule.name
        build = self._builds.get(name)
        if build is None:
            if monotonic() < self._retry_at.get(name, 0.0):
                return None
            if len(self._builds) >= _MAX_THREADS and self._open_count() >= _MAX_THREADS:
                return self._report_no_room(name)
            build = self._start(schedule)
            await self._wait(build)
        if not build.ended.is_set():
            return self._report_late(build)
        del self._builds[name]
        if build.schedule != schedule:
            return None  # it was changed meanwhile: the next pass builds it anew
        if build.error is not None:
            return self._failed(name, describe(build.error))
        self._failures.pop(name, None)
        return build.spec

    def _start(self, schedule: WorkflowSchedule) -> _Build:
        build = _Build(schedule, monotonic())
        self._builds[schedule.name] = build
        loop = asyncio.get_running_loop()

        def work() -> None:
            error: Exception | None = HorsiesError("build_with has ended its thread")
            try:
                build.spec = build_workflow(self._app, schedule)
                error = None
            except Exception as raised:  # noqa: BLE001 - user code: build_with
                error = raised
            finally:
                build.error = error
                with contextlib.suppress(RuntimeError):  # the scheduler and its loop have ended
                    loop.call_soon_threadsafe(self._end, build)

        # A daemon: a build that never ends must not keep the process from ending.
        threading.Thread(target=work, name=f"build {schedule.name}", daemon=True).start()
        return build

    def _end(self, build: _Build) -> None:
        build.ended.set()
        self.when_ended()

    async def _wait(self, build: _Build) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await build.ended.wait()
        except TimeoutError:
            self._patience_s = 0.0

    def _open_count(self) -> int:
        return sum(not build.ended.is_set() for build in self._builds.values())

    def _report_late(self, build: _Build) -> BuildFailure | None:
        if build.is_reported or monotonic() < build.started_at + LIMIT_S:
            return None
        build.is_reported = True
        return BuildFailure(f"build_with has not ended after {LIMIT_S:.0f} s")

    def _report_no_room(self, name: str) -> BuildFailure | None:
        if any(monotonic() < build.started_at + LIMIT_S for build in self._builds.values()):
            return None  # it is its turn soon
        return self._failed(name, f"{_MAX_THREADS} other builds have not ended")

    def _failed(self, name: str, reason: str) -> BuildFailure:
        count = self._failures.get(name, 0)
        self._failures[name] = count + 1
        self._retry_at[name] = monotonic() + min(_MAX_BACKOFF_S, 2.0 ** min(count, 10))
        return BuildFailure(reason)
