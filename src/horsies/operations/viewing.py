"""What operators see: tasks, queues, workers, workflows, and why a task does not run."""

import asyncio
from datetime import timedelta
from typing import Protocol, TypeVar

from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.operations import control, detail, listing, queues
from horsies.operations.control import AuditEntry
from horsies.operations.detail import TaskDetail
from horsies.operations.doctor import PATIENCE, Finding, examine
from horsies.operations.filters import TaskFilter
from horsies.operations.listing import TaskCount, TaskPage
from horsies.operations.queues import HOUR, QueueInfo, SystemStatus, TaskStats, WorkerInfo
from horsies.operations.steps import Steps, perform, perform_async
from horsies.operations.why import Explanation, why_steps
from horsies.result.broker import BrokerResult
from horsies.results.reading import Decode
from horsies.workflows.listing import WorkflowFilter, WorkflowPage, list_workflows

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

    def get_broker(self) -> OperatedBroker: ...

    def get_valid_queue_names(self) -> list[str]: ...


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
        return self._look(why_steps(task_id))

    async def why_async(self, task_id: str) -> BrokerResult[Explanation]:
        return await self._look_async(why_steps(task_id))

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

    def audit(self, *, limit: int = 50) -> BrokerResult[list[AuditEntry]]:
        """Who steered what, and why; the latest first."""
        return self._look(control.audit_steps(limit))

    async def audit_async(self, *, limit: int = 50) -> BrokerResult[list[AuditEntry]]:
        return await self._look_async(control.audit_steps(limit))

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
