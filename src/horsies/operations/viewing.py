"""What operators see: tasks, queues, workers, workflows, and why a task does not run."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol, TypeVar

from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.database.notifications import CHANGE_CHANNELS
from horsies.observability.hooks import EventHooks
from horsies.operations import control, counting, detail, history, listing, queues
from horsies.operations.control import AuditEntry
from horsies.operations.detail import TaskDetail
from horsies.operations.doctor import PATIENCE, Finding, examine
from horsies.operations.failures import FailureGroup, failure_steps
from horsies.operations.filters import TaskFilter
from horsies.operations.listing import TaskCount, TaskPage, whole_workflow_id_steps
from horsies.operations.queue_history import QueueHistory, queue_history_steps
from horsies.operations.queues import (
    HALF_MINUTE,
    HOUR,
    QueueInfo,
    SystemStatus,
    TaskStats,
    WorkerInfo,
)
from horsies.operations.steps import Steps, perform, perform_async
from horsies.operations.why import Explanation, why_steps
from horsies.result.broker import BrokerResult
from horsies.results.reading import Decode
from horsies.tasks.definition import TaskDefinition
from horsies.workflows.listing import WorkflowFilter, WorkflowPage, list_workflows
from horsies.workflows.overview import WorkflowOverview, read_failures, read_overview
from horsies.workflows.statements import FailureRow

T = TypeVar("T")
ALL = TaskFilter()
ALL_WORKFLOWS = WorkflowFilter()


class OperatedBroker(Protocol):
    """What operations need of a broker."""

    decode: Decode

    @property
    def database(self) -> Database: ...


class OperatedApp(Protocol):
    """What operations need of an app."""

    @property
    def on(self) -> EventHooks: ...
    def get_broker(self) -> OperatedBroker: ...

    def get_valid_queue_names(self) -> list[str]: ...
    def definition(self, task_name: str, /) -> TaskDefinition | None: ...


class Viewing:
    """See and explain what is stored, from any process that reaches the database.

    Nothing raises for an operational failure: each call returns a `BrokerResult`. All this needs no
    right to write and works on a replica.
    """

    def __init__(self, app: OperatedApp) -> None:
        self._app = app

    def tasks(
        self, wanted: TaskFilter = ALL, *, limit: int = 50, before: str | None = None
    ) -> BrokerResult[TaskPage]:
        """A page of tasks, newest first; go on with `before=page.next_before`.

        Tasks in flight are ordered by their claim and ended ones by their end, if the filter wants
        no others.
        """
        return self._look(listing.page_steps(wanted, limit, before))

    async def tasks_async(
        self, wanted: TaskFilter = ALL, *, limit: int = 50, before: str | None = None
    ) -> BrokerResult[TaskPage]:
        return await self._look_async(listing.page_steps(wanted, limit, before))

    def count(self, wanted: TaskFilter = ALL) -> BrokerResult[TaskCount]:
        """How many tasks match, up to 10,000: larger numbers print as `10,000+`."""
        return self._look(listing.count_steps(wanted))

    async def count_async(self, wanted: TaskFilter = ALL) -> BrokerResult[TaskCount]:
        return await self._look_async(listing.count_steps(wanted))

    def find_id(self, prefix: str) -> BrokerResult[str]:
        """The id of the one task whose id begins like this."""
        return self._look(listing.whole_id_steps(prefix))

    async def find_id_async(self, prefix: str) -> BrokerResult[str]:
        return await self._look_async(listing.whole_id_steps(prefix))

    def task(self, task_id: str) -> BrokerResult[TaskDetail | None]:
        """One task in full: attempts, captured output, timeline. The beginning of its id will do.

        `Ok(None)` if it was deleted meanwhile.
        """
        return self._look(self._detail_steps(task_id))

    async def task_async(self, task_id: str) -> BrokerResult[TaskDetail | None]:
        return await self._look_async(self._detail_steps(task_id))

    def _detail_steps(self, prefix: str) -> Steps[TaskDetail | None]:
        task_id = yield from listing.whole_id_steps(prefix)
        return (yield from detail.detail_steps(task_id, self._app.get_broker().decode))

    def why(self, task_id: str) -> BrokerResult[Explanation]:
        """Why a task stands where it stands: a sentence for each rule that holds it back now.

        The beginning of an id will do; `WORKFLOW_ID/NODE_ID` asks about a node.
        """
        return self._look(why_steps(task_id, self._kind_of))

    async def why_async(self, task_id: str) -> BrokerResult[Explanation]:
        return await self._look_async(why_steps(task_id, self._kind_of))

    def queues(self, *, window: timedelta = HOUR) -> BrokerResult[list[QueueInfo]]:
        """All queues: backlog and its age, what runs, rates and latencies within the window."""
        return self._look(queues.queues_steps(window, self._queue_names))

    async def queues_async(self, *, window: timedelta = HOUR) -> BrokerResult[list[QueueInfo]]:
        return await self._look_async(queues.queues_steps(window, self._queue_names))

    def task_stats(self, *, window: timedelta = HOUR) -> BrokerResult[list[TaskStats]]:
        """How tasks ended within the window, by name: counts, rates, latencies, run times."""
        return self._look(queues.task_stats_steps(window))

    async def task_stats_async(self, *, window: timedelta = HOUR) -> BrokerResult[list[TaskStats]]:
        return await self._look_async(queues.task_stats_steps(window))

    def workers(self, *, window: timedelta = HOUR) -> BrokerResult[list[WorkerInfo]]:
        """Workers that were seen within the window: whether they live, and what each holds."""
        return self._look(queues.workers_steps(window))

    async def workers_async(self, *, window: timedelta = HOUR) -> BrokerResult[list[WorkerInfo]]:
        return await self._look_async(queues.workers_steps(window))

    def worker_history(
        self, worker_id: str, window: timedelta = HOUR
    ) -> BrokerResult[list[history.WorkerPoint]]:
        """CPU, memory and load of a worker over time, in at most 121 points."""
        return self._look(history.worker_history_steps(worker_id, window))

    async def worker_history_async(
        self, worker_id: str, window: timedelta = HOUR
    ) -> BrokerResult[list[history.WorkerPoint]]:
        return await self._look_async(history.worker_history_steps(worker_id, window))

    def load_history(self, window: timedelta = HOUR) -> BrokerResult[list[history.LoadPoint]]:
        """What all workers ran over time, and how many slots they had."""
        return self._look(history.load_history_steps(window))

    async def load_history_async(
        self, window: timedelta = HOUR
    ) -> BrokerResult[list[history.LoadPoint]]:
        return await self._look_async(history.load_history_steps(window))

    def throughput(
        self, window: timedelta = HOUR, step: timedelta = HALF_MINUTE
    ) -> BrokerResult[list[history.EndPoint]]:
        """How many tasks ended in each step of the window, as far back as 100,000 of a state."""
        return self._look(history.throughput_steps(window, step))

    async def throughput_async(
        self, window: timedelta = HOUR, step: timedelta = HALF_MINUTE
    ) -> BrokerResult[list[history.EndPoint]]:
        return await self._look_async(history.throughput_steps(window, step))

    def queue_history(
        self, window: timedelta = HOUR, queue: str | None = None
    ) -> BrokerResult[QueueHistory]:
        """How one queue, or all of them, fared over time: up to 180 steps of equal length.

        Workers record it every ten seconds; what happened while none was there is missing.
        """
        return self._look(queue_history_steps(window, queue))

    async def queue_history_async(
        self, window: timedelta = HOUR, queue: str | None = None
    ) -> BrokerResult[QueueHistory]:
        return await self._look_async(queue_history_steps(window, queue))

    def totals(self) -> BrokerResult[counting.SystemTotals]:
        """How many tasks and workflows are in each state, up to 10,000, and stale claims."""
        return self._look(counting.totals_steps())

    async def totals_async(self) -> BrokerResult[counting.SystemTotals]:
        return await self._look_async(counting.totals_steps())

    def worker_totals(self) -> BrokerResult[list[counting.WorkerTotal]]:
        """How many tasks in each state are of each worker: in flight, and lately ended."""
        return self._look(counting.worker_totals_steps())

    async def worker_totals_async(self) -> BrokerResult[list[counting.WorkerTotal]]:
        return await self._look_async(counting.worker_totals_steps())

    def snapshot_ages(self) -> BrokerResult[list[counting.SnapshotAge]]:
        """How many snapshots of workers are stored, by age."""
        return self._look(counting.snapshot_ages_steps())

    async def snapshot_ages_async(self) -> BrokerResult[list[counting.SnapshotAge]]:
        return await self._look_async(counting.snapshot_ages_steps())

    def status(self, *, window: timedelta = HOUR) -> BrokerResult[SystemStatus]:
        """The whole system at a glance."""
        return self._look(queues.status_steps(window, self._queue_names))

    async def status_async(self, *, window: timedelta = HOUR) -> BrokerResult[SystemStatus]:
        return await self._look_async(queues.status_steps(window, self._queue_names))

    def doctor(self, *, patience: timedelta = PATIENCE) -> BrokerResult[list[Finding]]:
        """What is wrong with the database, each finding with its cure; changes nothing.

        A transaction may be open for as long as `patience`.
        """
        return examine(self._database, patience)

    async def doctor_async(self, *, patience: timedelta = PATIENCE) -> BrokerResult[list[Finding]]:
        return await asyncio.to_thread(examine, self._database, patience)

    def workflows(
        self, wanted: WorkflowFilter = ALL_WORKFLOWS, *, limit: int = 50, before: str | None = None
    ) -> BrokerResult[WorkflowPage]:
        """A page of workflows, newest first."""
        return self._database.perform(list_workflows(wanted, limit=limit, before=before))

    async def workflows_async(
        self, wanted: WorkflowFilter = ALL_WORKFLOWS, *, limit: int = 50, before: str | None = None
    ) -> BrokerResult[WorkflowPage]:
        operation = list_workflows(wanted, limit=limit, before=before)
        return await self._database.perform_async(operation)

    def workflow(
        self, workflow_id: str, *, deep: bool = False
    ) -> BrokerResult[WorkflowOverview | None]:
        """A workflow with the states of its nodes; with `deep`, all below it as well."""
        return read_overview(self._database, workflow_id, deep=deep)

    async def workflow_async(
        self, workflow_id: str, *, deep: bool = False
    ) -> BrokerResult[WorkflowOverview | None]:
        return await asyncio.to_thread(read_overview, self._database, workflow_id, deep=deep)

    def find_workflow(self, prefix: str) -> BrokerResult[str]:
        """The id of the one workflow whose id begins like this."""
        return self._look(whole_workflow_id_steps(prefix))

    async def find_workflow_async(self, prefix: str) -> BrokerResult[str]:
        return await self._look_async(whole_workflow_id_steps(prefix))

    def workflow_failures(
        self, workflow_id: str, *, limit: int = 10
    ) -> BrokerResult[list[FailureRow]]:
        """What failed by itself in a workflow and below it, in the order of time."""
        return self._database.perform(read_failures(workflow_id, limit))

    async def workflow_failures_async(
        self, workflow_id: str, *, limit: int = 10
    ) -> BrokerResult[list[FailureRow]]:
        return await self._database.perform_async(read_failures(workflow_id, limit))

    def failures(self, *, window: timedelta = HOUR) -> BrokerResult[list[FailureGroup]]:
        """What goes wrong lately: failures that are alike together, the latest first."""
        return self._look(failure_steps(window))

    async def failures_async(self, *, window: timedelta = HOUR) -> BrokerResult[list[FailureGroup]]:
        return await self._look_async(failure_steps(window))

    def audit(self, *, limit: int = 50) -> BrokerResult[list[AuditEntry]]:
        """Who steered what, and why; the latest first."""
        return self._look(control.audit_steps(limit))

    async def audit_async(self, *, limit: int = 50) -> BrokerResult[list[AuditEntry]]:
        return await self._look_async(control.audit_steps(limit))

    def on_change(self, callback: Callable[[], None]) -> bool:
        """Call back whenever a task, workflow or worker changes, on a thread of its own.

        Calls only wake: many changes may be told at once. False where notifications do not work,
        as behind a pooler; then look now and then.
        """
        listener = self._database.listener()
        if listener is None:
            return False
        for channel in CHANGE_CHANNELS:
            listener.subscribe(channel, lambda _: callback(), only_wakes=True)
        return True

    def _kind_of(self, task_name: str) -> str | None:
        definition = self._app.definition(task_name)
        return None if definition is None else definition.execution

    @property
    def _queue_names(self) -> list[str]:
        return self._app.get_valid_queue_names()

    def _look(self, steps: Steps[T]) -> BrokerResult[T]:
        return perform(self._database, steps, BrokerErrorCode.MONITORING_QUERY_FAILED)

    async def _look_async(self, steps: Steps[T]) -> BrokerResult[T]:
        return await perform_async(self._database, steps, BrokerErrorCode.MONITORING_QUERY_FAILED)

    @property
    def _database(self) -> Database:
        return self._app.get_broker().database
