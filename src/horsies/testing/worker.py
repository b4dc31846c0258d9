"""A worker that runs by hand, in this process, on a database whose clock can be moved."""

import asyncio
import threading
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from horsies.app import Horsies
from horsies.broker.postgres import PostgresBroker
from horsies.config import PostgresConfig
from horsies.scheduling.scheduler import Scheduler
from horsies.testing.databases import set_now
from horsies.testing.recording import RecordingEnqueuer
from horsies.testing.sends import Sends
from horsies.worker.completer import Recorded
from horsies.worker.settings import WorkerConfig
from horsies.worker.task_log import TaskLog
from horsies.worker.worker import Worker

_LONGEST_RUN_S = 60.0


class Clock:
    """The time that decides what is due. It is the real one until it is first moved or set."""

    def __init__(self, url: str, broker: PostgresBroker) -> None:
        self._url = url
        self._broker = broker
        self._now: datetime | None = None

    @property
    def now(self) -> datetime:
        return self._now or datetime.now(UTC)

    def move(self, **by: float) -> datetime:
        """Move it: `clock.move(hours=1)`. From then on it stands still between moves."""
        return self.set(self.now + timedelta(**by))

    def set(self, now: datetime) -> datetime:
        set_now(self._url, now)
        self._now = now
        self._broker.close()  # sessions know the time from their beginning
        return now


class ManualWorker:
    """Runs the tasks of an app when told to; plain functions run in threads of this process.

    The app's schedules begin with it, and each run first sends what is due of them.
    """

    def __init__(self, app: Horsies, url: str, sends: Sends) -> None:
        self.app = app
        self.sends = sends
        self.clock = Clock(url, app.get_broker())
        if self._has_schedules:
            _in_thread(Scheduler(app).run_once())

    def run_once(self) -> int:
        """Run one task of each queue at most; return how many attempts ended."""
        return _in_thread(self._run(is_one=True))

    def run_until_idle(self) -> int:
        """Run what is due, and what follows from it; return how many attempts ended."""
        return _in_thread(self._run(is_one=False))

    async def run_once_async(self) -> int:
        """The awaitable twin of `run_once`."""
        return await self._run(is_one=True)

    async def run_until_idle_async(self) -> int:
        """The awaitable twin of `run_until_idle`."""
        return await self._run(is_one=False)

    @property
    def _has_schedules(self) -> bool:
        schedules = self.app.config.schedule
        return schedules is not None and schedules.enabled

    async def _run(self, *, is_one: bool) -> int:
        settings = WorkerConfig(
            processes=1,
            threads=1 if is_one else 4,
            concurrency=1 if is_one else 100,
            max_claim_batch=1 if is_one else 0,
            is_burst=True,
            is_in_process=True,
            stops_after_one=is_one,
        )
        worker = Worker(self.app, settings)
        counting = _Counting()
        worker.observers.task_log = counting
        async with asyncio.timeout(_LONGEST_RUN_S):
            if self._has_schedules:
                await _send_what_is_due(Scheduler(self.app))
            (await self.app.get_broker().expire_pending_tasks()).unwrap()
            await worker.run()
        return counting.count


async def _send_what_is_due(scheduler: Scheduler) -> None:
    """One pass, and others for as long as workflows are being built in their threads."""
    builds, one_ended = scheduler.builds, asyncio.Event()
    builds.when_ended = one_ended.set
    await scheduler.run_once()
    while builds.are_under_way:
        await one_ended.wait()
        one_ended.clear()
        await scheduler.run_once()


class _Counting(TaskLog):
    """Counts ended attempts."""

    def __init__(self) -> None:
        super().__init__("none")
        self.count = 0

    def record(self, ended: Sequence[Recorded]) -> None:
        self.count += sum(one.outcome not in {"interrupted", "claim_lost"} for one in ended)


@contextmanager
def manual(app: Horsies, database_url: str) -> Generator[ManualWorker, None, None]:
    """Have the app use this database for the length of the block, and run its tasks by hand."""
    sends = Sends(app)
    broker = PostgresBroker(PostgresConfig(database_url=database_url, pool_size=5))
    broker.enqueuer = RecordingEnqueuer(broker.database, sends)
    before = app._broker
    app._broker = broker
    try:
        yield ManualWorker(app, database_url, sends)
    finally:
        app._broker = before
        broker.close()


def _in_thread(coroutine: Coroutine[Any, Any, int]) -> int:
    """Run to the end in a thread of its own: this one may run an event loop."""
    done: list[int] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(asyncio.run(coroutine))
        except BaseException as error:  # noqa: BLE001  # handed on to the caller
            failed.append(error)

    thread = threading.Thread(target=run, name="horsies-manual-worker")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
