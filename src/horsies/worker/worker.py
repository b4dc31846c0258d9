"""Joins the parts of a worker; the nesting of its task groups shows their lifetimes."""

import asyncio
import json
import logging
import os
import socket
import sys
import uuid
from collections.abc import Sequence

import psycopg
from psycopg import Connection

from horsies.app import Horsies
from horsies.broker.health import PING_CHANNEL, PONG_CHANNEL
from horsies.codec.results import UNTYPED, read_result
from horsies.database.listener import Listener
from horsies.database.statement import is_passing, run_blocking
from horsies.database.workers import Sender, hold_worker_lock, notify
from horsies.executors.base import CaptureSettings, Executor
from horsies.executors.in_loop import InLoopExecutor
from horsies.executors.journal import Journal, create_journal
from horsies.executors.processes import ProcessExecutor
from horsies.executors.threads import ThreadExecutor
from horsies.maintenance.death_watch import DeathWatch
from horsies.maintenance.reaper import Reaper
from horsies.worker.buffer import Buffer
from horsies.worker.cancelling import CANCEL_CHANNEL, CancelWatch
from horsies.worker.child_main import AppDefinitions
from horsies.worker.claimer import Claimer, Identity
from horsies.worker.completer import Completer, Recorded
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.heartbeat import Heartbeat
from horsies.worker.lanes import Kind, Lane, lane_names
from horsies.worker.link import Link
from horsies.worker.loop_watch import LoopWatch
from horsies.worker.retries import RetryBell
from horsies.worker.settings import WorkerConfig, served_queues
from horsies.worker.snapshots import Snapshots

_logger = logging.getLogger("horsies.worker")
# What a second signal leaves for writing outcomes to a database that may be away.
_LAST_WRITES_S = 5.0


class Worker:
    """One worker process.

    Three connections carry statements, one carries notifications and the liveness lock.
    """

    def __init__(self, app: Horsies, settings: WorkerConfig) -> None:
        self._app = app
        self._settings = settings
        self.identity = Identity(str(uuid.uuid4()), socket.gethostname(), os.getpid())
        self.queues = served_queues(app.config, settings.queues)
        self.stopping = asyncio.Event()
        self.stopping_now = asyncio.Event()
        self.ready = asyncio.Event()
        self._changed = asyncio.Event()
        session = app.get_broker().session
        resilience = app.config.resilience
        self._claim_link = Link(session.address, "horsies claim", resilience)
        self._finish_link = Link(session.address, "horsies finish", resilience)
        self._service_link = Link(session.address, "horsies service", resilience)
        self._session_address = session.session_address
        has_caps = app.config.cluster_wide_cap is not None or any(
            queue.cap is not None for queue in self.queues
        )
        self._completer = Completer(
            self._finish_link, self.identity.worker_id, self._on_recorded, has_caps=has_caps
        )
        self._journal = create_journal(self.identity.worker_id)
        self._lanes, self._task_lanes = self._make_lanes()
        self._dispatcher = Dispatcher(
            app.config, self._lanes, self._completer, self._journal, self._on_room
        )
        owner = (self.identity.worker_id, self.identity.hostname, self.identity.pid)
        self._buffer = Buffer(self._claim_link, owner, self._lanes, self._dispatcher)
        self._claimer = Claimer(
            app.config, settings, self.identity, self.queues, self._lanes, self._task_lanes,
            (self._claim_link, self._dispatcher, self._completer, self._buffer),
        )  # fmt: skip
        self._bell = RetryBell(self._service_link)
        self._cancels = CancelWatch(self._service_link, self._dispatcher, self.identity.worker_id)

    def _make_lanes(self) -> tuple[list[Lane], dict[str, int]]:
        kinds: dict[str, Kind] = {
            name: task.definition.execution for name, task in self._app.tasks.items()
        }
        present, task_lanes = lane_names(kinds)
        config, settings = self._app.config, self._settings
        capture = CaptureSettings(config.capture_task_output, config.task_log_max_bytes)
        definitions = AppDefinitions(self._app, self._journal)
        lanes: list[Lane] = []
        for kind in present:
            executor: Executor
            slots = settings.concurrency
            if kind == "process" and kind in kinds.values():
                slots = settings.processes
                executor = ProcessExecutor(
                    slots,
                    bootstrap=[
                        sys.executable, "-m", "horsies.worker.child_main",
                        settings.app_locator or "",
                        str(self._journal.path) if self._journal else "",
                    ],
                    max_tasks_per_child=settings.max_tasks_per_child,
                    max_memory_per_child_mb=settings.max_memory_per_child_mb,
                    capture=capture,
                    journal=self._journal,
                )  # fmt: skip
            elif kind == "blocking":
                slots = settings.thread_count
                executor = ThreadExecutor(definitions, slots, capture=capture)
            else:
                # Also lane 1 of an app without process tasks: unknown names only get their error
                # here.
                executor = InLoopExecutor(definitions, slots, capture=capture)
            lanes.append(Lane(kind, executor, slots))
        return lanes, task_lanes

    async def run(self) -> None:
        """Work until told to stop, then hand back what is unstarted and finish what runs."""
        for lane in self._lanes:
            await lane.executor.start()
        listener = self._start_listener()
        sender = Sender(self.identity.worker_id, self.identity.hostname, self.identity.pid)
        heartbeat = Heartbeat(
            self._app.config, sender, self._service_link,
            (self._dispatcher, self._buffer, self._completer),
        )  # fmt: skip
        snapshots = Snapshots(
            self._app.config, self._settings, self.identity, self.queues,
            (self._service_link, self._dispatcher, self._buffer), holds_lock=listener is not None,
        )  # fmt: skip
        recovery, hostname = self._app.config.recovery, self.identity.hostname
        reaper = Reaper(self._service_link, recovery, hostname=hostname)
        watch = DeathWatch(
            self._service_link, recovery, hostname=hostname, own_id=self.identity.worker_id
        )
        try:
            async with asyncio.TaskGroup() as lasting:  # ends last: heartbeats outlive the drain
                completing = lasting.create_task(self._completer.run(), name="completer")
                services = [
                    completing,
                    lasting.create_task(heartbeat.run(), name="heartbeat"),
                    lasting.create_task(snapshots.run(), name="snapshots"),
                    lasting.create_task(reaper.run(), name="reaper"),
                    lasting.create_task(watch.run(), name="death watch"),
                    lasting.create_task(self._cancels.run(), name="cancels"),
                    lasting.create_task(self._bell.run(), name="retries"),
                    lasting.create_task(LoopWatch().run(), name="loop watch"),
                ]
                self.ready.set()
                try:
                    await self._claimer.run(self.stopping, self._on_idle)
                    await self._drain()
                finally:
                    # Also when a bug ends the claimer: what is known is written before the worker
                    # goes.
                    await self._flush(completing)
                for service in services:
                    service.cancel()
        finally:
            if listener is not None:
                await asyncio.to_thread(listener.close)
            for lane in self._lanes:
                await lane.executor.close(kill=True)
            for link in (self._claim_link, self._finish_link, self._service_link):
                await link.close()
            if self._journal is not None:
                self._leave(self._journal)

    async def _flush(self, completing: asyncio.Task[None]) -> None:
        """Wait until all is written, the writer itself has failed, or the wait has to end."""
        if self._finish_link.is_failing:
            _logger.warning("stopping: the database is awaited; a second signal ends the wait")
        flushing = asyncio.ensure_future(self._completer.flush())
        hurry = asyncio.ensure_future(self._until_in_a_hurry())
        try:
            await asyncio.wait({flushing, completing, hurry}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            flushing.cancel()
            hurry.cancel()

    async def _until_in_a_hurry(self) -> None:
        await self.stopping_now.wait()
        await asyncio.sleep(_LAST_WRITES_S)

    def _leave(self, journal: Journal) -> None:
        """The journal goes, unless peers need it to tell what of ours had begun."""
        unwritten = len(self._completer.held_ids())
        if unwritten:
            _logger.warning(
                "%d outcomes could not be written: their tasks are found by other workers",
                unwritten,
            )
        if unwritten or self._claimer.has_lost_answer:
            journal.close()
        else:
            journal.remove()

    @property
    def has_abandoned(self) -> bool:
        """Whether a coroutine that ignores its cancellation still holds the event loop."""
        return any(
            isinstance(lane.executor, InLoopExecutor) and lane.executor.abandoned_count
            for lane in self._lanes
        )

    def stop(self) -> None:
        """First call: finish what runs. Second call: end it now."""
        if self.stopping.is_set():
            self.stopping_now.set()
        self.stopping.set()
        self._changed.set()
        self._claimer.look()

    async def _drain(self) -> None:
        try:
            returned = await self._buffer.give_back()
        except psycopg.Error as error:
            if not is_passing(error):
                raise
            returned = 0
            _logger.warning("claims not handed back, their leases will pass: %s", error)
        running = self._dispatcher.running
        if returned or running:
            _logger.info(
                "stopping: %d claims handed back, %d tasks to finish", returned, len(running)
            )
        try:
            async with asyncio.timeout(self._settings.drain_timeout_s):
                await self._until_free_or_stopped()
        except TimeoutError:
            self._interrupt()
            await self._until_free_or_stopped()
        if running:
            _logger.warning("stopping now: %d running tasks are ended", len(running))
            self._interrupt()
            self._dispatcher.give_back_accepted()
            for lane in self._lanes:
                await lane.executor.close(kill=True)

    async def _until_free_or_stopped(self) -> None:
        while self._dispatcher.running and not self.stopping_now.is_set():
            self._changed.clear()
            await self._changed.wait()

    def _interrupt(self) -> None:
        """Hand interruptible tasks back uncounted; the rest runs on."""
        ids = [
            task_id
            for task_id, held in self._dispatcher.running.items()
            if (definition := self._app.definition(held.task.task_name)) is not None
            and definition.interruptible
        ]
        if ids:
            _logger.info("%d interruptible tasks are handed back", len(ids))
        for task_id in ids:
            self._dispatcher.stop(task_id, "drain")

    def _on_room(self) -> None:
        self._claimer.room()
        self._changed.set()

    def _on_idle(self) -> None:
        if self._settings.is_burst:
            self.stop()

    def _on_recorded(self, recorded: Sequence[Recorded]) -> None:
        for one in recorded:
            task = one.completion.task
            self._dispatcher.settle(task.id)
            if one.outcome == "retried" and one.retry_after_s is not None:
                self._bell.add(task.id, task.queue_name, one.retry_after_s)
            elif one.outcome == "failed":
                self._call_failure_hooks(one)
            elif one.outcome == "claim_lost":
                _logger.warning("task %s: its claim was lost, the result is dropped", task.id)
        if self._settings.is_burst and not self._dispatcher.running:
            self._claimer.look()  # whether that was all
        self._claimer.room()

    def _call_failure_hooks(self, recorded: Recorded) -> None:
        if not self._app.failure_hooks:
            return
        task = recorded.completion.task
        error = read_result(recorded.completion.result, UNTYPED).err_value
        for hook in self._app.failure_hooks:
            try:
                hook(task_id=task.id, task_name=task.task_name, attempt=task.attempt, error=error)
            except Exception:  # user code
                _logger.exception("a failure hook raised; the failure of task %s stands", task.id)

    def _start_listener(self) -> Listener | None:
        address = self._session_address
        if address is None:
            _logger.info("no direct database URL behind the pooler: polling only")
            return None
        loop = asyncio.get_running_loop()

        def hold_lock(connection: Connection[object]) -> None:
            run_blocking(connection, hold_worker_lock(self.identity.worker_id))

        def wake(_payload: str) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._claimer.look)

        def cancel(task_id: str) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._cancels.look, task_id)

        def answer(ping_id: str) -> None:
            if ping_id and not loop.is_closed():
                asyncio.run_coroutine_threadsafe(self._answer_ping(ping_id), loop)

        listener = Listener(lambda: address.connect("horsies listener"), on_connect=hold_lock)
        for queue in self.queues:
            channel = f"task_queue_{queue.name}"
            listener.subscribe(channel if len(channel.encode()) <= 63 else "task_new", wake)
        listener.subscribe(PING_CHANNEL, answer)
        listener.subscribe(CANCEL_CHANNEL, cancel)
        return listener

    async def _answer_ping(self, ping_id: str) -> None:
        pong = {
            "ping_id": ping_id,
            "worker_id": self.identity.worker_id,
            "hostname": self.identity.hostname,
            "pid": self.identity.pid,
            "queues": [queue.name for queue in self.queues],
            "tasks_running": len(self._dispatcher.running),
        }
        try:
            await self._service_link.run(notify([(PONG_CHANNEL, json.dumps(pong))]))
        except psycopg.Error as error:
            _logger.warning("could not answer a ping: %s", error)
