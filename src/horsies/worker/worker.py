"""Joins the parts of a worker; the nesting of its task groups shows their lifetimes."""

import asyncio
import logging
from collections.abc import Sequence

import psycopg

from horsies.app import Horsies
from horsies.database.verdict import is_transient
from horsies.executors.base import ExecutorStartError
from horsies.recovery.begun_slots import BegunSlots, create_begun_slots
from horsies.recovery.death_watch import DeathWatch
from horsies.recovery.duties import DutyRounds
from horsies.recovery.queue_history import QueueHistory
from horsies.recovery.reaper import Reaper
from horsies.recovery.telling import has_listeners
from horsies.worker.buffer import Buffer
from horsies.worker.cancel_watch import CancelWatch
from horsies.worker.claim_news import ClaimNews
from horsies.worker.claim_request import PermitRequest
from horsies.worker.claimer import Claimer
from horsies.worker.completer import Completer, Recorded
from horsies.worker.dispatcher import Dispatcher, DispatchEvents
from horsies.worker.hand_back import HandBack
from horsies.worker.heartbeat import Heartbeat
from horsies.worker.holdings import Holdings
from horsies.worker.identity import own_identity
from horsies.worker.lanes import make_lanes
from horsies.worker.loop_watch import LoopWatch
from horsies.worker.node_marks import NodeMarks
from horsies.worker.notifications import Heard, PingAnswers, start_listener
from horsies.worker.observers import Observers
from horsies.worker.permits import Permits
from horsies.worker.progress import ProgressReports
from horsies.worker.retry_notifier import RetryNotifier
from horsies.worker.service import Service, repeat
from horsies.worker.service_connection import Outage, ServiceConnection
from horsies.worker.settings import WorkerConfig, WorkerContext
from horsies.worker.snapshots import KnownNames, SnapshotEvents, Snapshots
from horsies.worker.statements import StoredSnapshot
from horsies.worker.stopped_nodes import StoppedNodes
from horsies.worker.subworkflow_service import SubWorkflowService
from horsies.worker.task_log import what_goes_on, what_is_left
from horsies.worker.unknown_tasks import UnknownNames, unknown_tasks_reports
from horsies.worker.vitals import Signs, Vitals
from horsies.worker.workflow_service import WorkflowService
from horsies.workflows.definition import definition_keys

_logger = logging.getLogger("horsies.worker")
# What a second signal leaves for writing outcomes to a database that may be away.
_LAST_WRITES_S = 5.0


class Worker:
    """One worker process.

    Three connections carry statements, one carries heartbeats when they are owed, one carries
    notifications and the liveness lock.
    """

    _start_error: ExecutorStartError | None = None

    def __init__(self, app: Horsies, settings: WorkerConfig) -> None:
        self._app = app
        self.context = context = WorkerContext(
            app.config, settings, own_identity(settings.worker_id)
        )
        self.stopping = asyncio.Event()
        self.stopping_now = asyncio.Event()
        self.ready = asyncio.Event()
        # Peers must know a worker before it holds anything: killed, it would be a stranger to them.
        self._may_claim = asyncio.Event()
        self._changed = asyncio.Event()
        self._session_address = app.get_broker().database.session_address
        self._outage = Outage()

        self._claiming = self._connect("horsies claim", 10.0)
        # Results do not wait for locked rows.
        self._finishing = self._connect("horsies finish", 1.0)
        self._serving = self._connect("horsies service", 10.0)
        worker_id = context.identity.worker_id
        self.observers = observers = Observers(app, context)
        self.loop_watch = LoopWatch(observers.loop_lagged)
        self._begun_slots = create_begun_slots(worker_id)
        self.lanes = make_lanes(app, settings, self._begun_slots, worker_id)
        permits = Permits(self.lanes.all)
        self._completer = Completer(
            self._finishing,
            worker_id,
            self._on_recorded,
            permits,
            self._on_granted,
            has_caps=context.has_caps,
        )
        self._dispatcher = Dispatcher(
            app.config,
            self.lanes.all,
            self._completer,
            permits,
            self._begun_slots,
            DispatchEvents(
                self._on_slot_freed, observers.claimed, observers.started, observers.expired
            ),
            app.definition,
        )
        self._buffer = Buffer(self._claiming, context.identity, self.lanes.all, self._dispatcher)
        self._holdings = Holdings(self._buffer, self._dispatcher, self._completer)
        started = (self._may_claim, self.ready)
        signs = Signs((self._claiming, self._finishing), started, self.stopping)
        self.vitals = Vitals(
            context,
            self.loop_watch,
            self._holdings,
            self.lanes.all,
            signs,
            observers.metrics,
        )
        self._claim_news = ClaimNews(self._serving, self._holdings)
        unknown = UnknownNames(self._claiming, worker_id, self.lanes, app.definition)
        self._claimer = Claimer(
            context, self._claiming, self.lanes, self._holdings, self._claim_news, unknown
        )
        self._retry_notifier = RetryNotifier(self._serving)
        self._cancel_watch = CancelWatch(self._serving, self._dispatcher, worker_id)
        self._stopped_nodes = StoppedNodes(self._serving, self._dispatcher, worker_id)
        self._children = SubWorkflowService(app, self._serving, is_stopping=self.stopping.is_set)
        self._workflows = WorkflowService(
            self._serving, self._children, self._claimer.wake if settings.is_burst else None
        )
        # Whether to look by itself what ended tasks leave to do in workflows: else it is told.
        self._looks_after_workflows = False

    def _connect(self, name: str, lock_limit_s: float) -> ServiceConnection:
        return ServiceConnection(
            self._app.get_broker().database.address,
            name,
            self._app.config.resilience,
            outage=self._outage,
            lock_limit_s=lock_limit_s,
        )

    async def run(self) -> None:
        """Work until told to stop, then hand back what is unstarted and finish what runs."""
        pings = PingAnswers(self.context, self._serving, self._dispatcher)
        heard = Heard(
            self._claimer, self._cancel_watch, pings, self._workflows, self._stopped_nodes
        )
        listener = start_listener(self._session_address, self.context, heard, self._outage)
        self._looks_after_workflows = listener is None or self.context.settings.is_burst
        heartbeat = Heartbeat(
            self.context,
            self._app.get_broker().database.address,
            self._holdings,
            self.loop_watch.blocked_for,
        )
        services = self._services(holds_lock=listener is not None)
        try:
            async with asyncio.TaskGroup() as lasting:  # ends last: heartbeats outlive the drain
                completing = lasting.create_task(self._completer.run(), name="completer")
                woken = (
                    self._cancel_watch,
                    pings,
                    self._claim_news,
                    self._workflows,
                    self._children,
                    self._stopped_nodes,
                )
                running = [
                    completing,
                    lasting.create_task(self._start_executors(), name="executors"),
                    *(lasting.create_task(repeat(one, one.woken), name=one.name) for one in woken),
                    lasting.create_task(self._retry_notifier.run(), name="retry notifier"),
                    lasting.create_task(self.loop_watch.run(), name="loop watch"),
                    lasting.create_task(heartbeat.run(), name="heartbeat"),
                    *(lasting.create_task(repeat(one), name=one.name) for one in services),
                    *self._start_scheduler(lasting),
                ]
                self.observers.hook_calls.worker_started(self.context.queues)
                try:
                    await self._may_claim.wait()
                    await self._claimer.run(self.stopping, self._on_idle)
                    self.observers.hook_calls.worker_stopping(len(self._dispatcher.running))
                    await self._drain()
                finally:
                    # Also when a bug ends the claimer: what is known is written before the worker
                    # goes.
                    await self._flush(completing)
                await self.observers.hook_calls.close()
                for service in running:
                    service.cancel()
        finally:
            if listener is not None:
                await asyncio.to_thread(listener.close)
            for lane in self.lanes.all:
                await lane.executor.close(kill=True)
            for connection in (self._claiming, self._finishing, self._serving):
                await connection.close()
            if self._begun_slots is not None:
                self._leave(self._begun_slots)
        if self._start_error is not None:
            raise self._start_error

    async def _start_executors(self) -> None:
        """Children import the app first; what runs in this process is claimed meanwhile."""
        try:
            await asyncio.gather(*(lane.start() for lane in self.lanes.all))
        except ExecutorStartError as error:
            self._start_error = error
            self.stop()
            return
        self.ready.set()
        self._claimer.wake()

    def _start_scheduler(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Send what is scheduled until the drain begins, if this worker was told to."""
        if not self.context.settings.has_scheduler:
            return []
        from horsies.scheduling.process import fire_until
        from horsies.scheduling.scheduler import Scheduler

        database = self._app.get_broker().database
        firing = fire_until(self.stopping, asyncio.Event(), Scheduler(self._app), database)
        return [group.create_task(firing, name="scheduler")]

    def _services(self, *, holds_lock: bool) -> list[Service]:
        snapshots = Snapshots(
            self.context,
            self._serving,
            self._holdings,
            SnapshotEvents(on_stored=self._on_snapshot, on_drain=self.stop),
            holds_lock=holds_lock,
            names=KnownNames(self._app.list_tasks(), definition_keys()),
        )
        return [
            snapshots,
            HandBack(self._dispatcher),
            NodeMarks(self._serving, self._dispatcher),
            ProgressReports(self._serving, self.lanes.all, self._dispatcher),
            *unknown_tasks_reports(self._app, self._serving, self.context.queues),
            *_recovery_services(self, self._serving, snapshots, is_electable=holds_lock),
        ]

    async def _flush(self, completing: asyncio.Task[None]) -> None:
        """Wait until all is written, the writer itself has failed, or the wait has to end."""
        if self._finishing.is_failing:
            _logger.warning("stopping: waiting for the database; a second signal ends the wait")
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

    def _leave(self, begun_slots: BegunSlots) -> None:
        """Delete the begun slots, unless peers need them to tell which of our runs had begun."""
        unwritten = len(self._completer.held_ids())
        if unwritten:
            _logger.warning(
                "%d outcomes could not be written; other workers will recover their tasks",
                unwritten,
            )
        if unwritten or self._claimer.lost:
            begun_slots.close()
        else:
            begun_slots.remove()

    def describe(self) -> str:
        """Say what the worker is doing, for an operator who sends SIGUSR1."""
        running = list(self._dispatcher.running.values())
        unwritten_count = len(self._completer.held_ids())
        return what_goes_on(running, len(self._buffer.tasks), unwritten_count)

    def stop(self) -> None:
        """First call: finish what runs. Second call: end it now."""
        if self.stopping.is_set():
            self.stopping_now.set()
        self.stopping.set()
        self._changed.set()
        self._may_claim.set()
        self._claimer.wake()

    async def _drain(self) -> None:
        try:
            returned = await self._buffer.give_back()
            if self._claimer.lost:
                await self._claimer.lost.give_back()
        except psycopg.Error as error:
            if not is_transient(error):
                raise
            returned = 0
            _logger.warning("could not hand claims back, their leases will expire: %s", error)
        running = self._dispatcher.running
        if returned or running:
            _logger.info("stopping: %s", what_is_left(returned, list(running.values())))
        try:
            async with asyncio.timeout(self.context.settings.drain_timeout_s):
                await self._until_free_or_stopped()
        except TimeoutError:
            self._dispatcher.interrupt()
            await self._until_free_or_stopped()
        if running:
            _logger.warning("stopping now: %d running tasks are ended", len(running))
            self._dispatcher.interrupt()
            self._dispatcher.give_back_accepted()
            for lane in self.lanes.all:
                await lane.executor.close(kill=True)

    async def _until_free_or_stopped(self) -> None:
        while self._dispatcher.running and not self.stopping_now.is_set():
            self._changed.clear()
            await self._changed.wait()

    def _on_snapshot(self, stored: StoredSnapshot) -> None:
        self._claimer.idle_peer_count = stored.idle_peer_count
        self._may_claim.set()

    def _on_slot_freed(self) -> None:
        if self.context.settings.stops_after_one and not self.stopping.is_set():
            self.stop()
        self._claimer.slot_freed()
        self._changed.set()

    def _on_idle(self) -> None:
        is_done = self.context.settings.is_burst and self._workflows.is_settled
        if is_done or self._claimer.is_exhausted:
            self.stop()

    def _on_granted(self, permit: PermitRequest, voided: Sequence[int | None]) -> None:
        self._dispatcher.grant(permit, voided)

    def _on_recorded(self, recorded: Sequence[Recorded]) -> None:
        self.observers.recorded(recorded)
        for one in recorded:
            task = one.completion.task
            self._dispatcher.settle(task)
            if self.context.has_caps:
                self._claimer.wake(task.queue_name)  # a place under its cap is free
            if one.outcome == "retried" and one.retry_after_s is not None:
                self._retry_notifier.add(task.task_id, task.queue_name, one.retry_after_s)
            elif one.outcome == "claim_lost":
                _logger.warning("task %s: its claim was lost, the result is dropped", task.task_id)
        if self._looks_after_workflows and any(
            one.completion.task.is_workflow_task for one in recorded
        ):
            self._workflows.wake()
        if self.context.settings.is_burst and not self._dispatcher.running:
            self._claimer.wake()  # whether that was all
        self._claimer.slot_freed()


def _recovery_services(
    worker: Worker, connection: ServiceConnection, snapshots: Snapshots, *, is_electable: bool
) -> list[Service]:
    config, identity, observers = worker.context.config, worker.context.identity, worker.observers
    calls = observers.hook_calls
    has_hook = bool(calls.hooks.of("expired"))
    tell = calls.tell if has_listeners(calls.hooks) else None
    reaper = Reaper(
        connection,
        config.recovery,
        host_key=identity.host_key,
        on_expired=observers.expired if has_hook else None,
        tell=tell,
    )
    duties = [QueueHistory(connection).duty(), *reaper.duties()]
    return [
        DutyRounds(connection, identity.worker_id, duties),
        DeathWatch(
            connection,
            config.recovery,
            host_key=identity.host_key,
            own_id=identity.worker_id,
            is_electable=is_electable,
            peer_count=lambda: snapshots.peer_count,
            tell=tell,
        ),
    ]
