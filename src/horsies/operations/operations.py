"""`app.operations`: see, explain and steer a running system. All viewers use only this."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.operations import actions, control, detail, listing, prune, queues
from horsies.operations.actions import Target, act_steps
from horsies.operations.control import UNSAID, AuditEntry, Note
from horsies.operations.detail import TaskDetail
from horsies.operations.filters import ENDED, TaskFilter
from horsies.operations.listing import TaskCount, TaskPage
from horsies.operations.queues import HOUR, QueueInfo, SystemStatus, TaskStats, WorkerInfo
from horsies.operations.steps import Steps, perform, perform_async
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


class Operations:
    """See, explain and steer what is stored, from any process that reaches the database.

    Nothing raises for an operational failure: each call returns a `BrokerResult`. Calls that only
    look need no right to write and work on a replica.
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

    def prune(
        self, older_than: timedelta, *, statuses: Sequence[str] = ENDED, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        """Delete tasks that ended so long ago, in small batches; `dry_run` only counts."""
        return self._change(prune.prune_steps(older_than, statuses, dry_run=dry_run))

    async def prune_async(
        self, older_than: timedelta, *, statuses: Sequence[str] = ENDED, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        return await self._change_async(prune.prune_steps(older_than, statuses, dry_run=dry_run))

    def cancel(
        self, target: Target, *, running: bool = False, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        """Withdraw tasks that wait; with `running`, ask workers to end what runs.

        `target` is an id, a list of ids or a filter. Returns how many changed; `dry_run` counts.
        """
        return self._change(
            act_steps(actions.cancel(running=running), target, note, dry_run=dry_run)
        )

    async def cancel_async(
        self, target: Target, *, running: bool = False, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        return await self._change_async(
            act_steps(actions.cancel(running=running), target, note, dry_run=dry_run)
        )

    def requeue(
        self,
        target: Target,
        *,
        include_completed: bool = False,
        note: Note = UNSAID,
        dry_run: bool = False,
    ) -> BrokerResult[TaskCount]:
        """Put failed and cancelled tasks back in their queues."""
        return self._change(
            act_steps(
                actions.requeue(include_completed=include_completed), target, note, dry_run=dry_run
            )
        )

    async def requeue_async(
        self,
        target: Target,
        *,
        include_completed: bool = False,
        note: Note = UNSAID,
        dry_run: bool = False,
    ) -> BrokerResult[TaskCount]:
        return await self._change_async(
            act_steps(
                actions.requeue(include_completed=include_completed), target, note, dry_run=dry_run
            )
        )

    def reschedule(
        self, target: Target, run_at: datetime | None, *, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        """Let waiting tasks start at another time; `None` is now."""
        return self._change(act_steps(actions.reschedule(run_at), target, note, dry_run=dry_run))

    async def reschedule_async(
        self, target: Target, run_at: datetime | None, *, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        return await self._change_async(
            act_steps(actions.reschedule(run_at), target, note, dry_run=dry_run)
        )

    def retry_now(
        self, target: Target, *, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        """Do not wait any longer for a retry or a scheduled start."""
        return self._change(act_steps(actions.reschedule(None), target, note, dry_run=dry_run))

    async def retry_now_async(
        self, target: Target, *, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        return await self._change_async(
            act_steps(actions.reschedule(None), target, note, dry_run=dry_run)
        )

    def reprioritise(
        self, target: Target, priority: int, *, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        """Give waiting tasks another priority; lower starts first."""
        return self._change(self._reprioritise_steps(priority, target, note, dry_run=dry_run))

    async def reprioritise_async(
        self, target: Target, priority: int, *, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        return await self._change_async(
            self._reprioritise_steps(priority, target, note, dry_run=dry_run)
        )

    def delete(
        self, target: Target, *, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        """Delete ended tasks with their attempts and output."""
        return self._change(act_steps(actions.delete(), target, note, dry_run=dry_run))

    async def delete_async(
        self, target: Target, *, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        return await self._change_async(act_steps(actions.delete(), target, note, dry_run=dry_run))

    def pause_queue(self, queue: str, *, note: Note = UNSAID) -> BrokerResult[bool]:
        """Start nothing of a queue until it is resumed; False if it was paused already.

        What workers have taken already runs.
        """
        return self._change(control.pause_steps(queue, note))

    async def pause_queue_async(self, queue: str, *, note: Note = UNSAID) -> BrokerResult[bool]:
        return await self._change_async(control.pause_steps(queue, note))

    def resume_queue(self, queue: str, *, note: Note = UNSAID) -> BrokerResult[bool]:
        """Let a queue go on, at once; False if it was not paused."""
        return self._change(control.resume_steps(queue, note))

    async def resume_queue_async(self, queue: str, *, note: Note = UNSAID) -> BrokerResult[bool]:
        return await self._change_async(control.resume_steps(queue, note))

    def limit_queue(
        self, queue: str, max_concurrency: int | None, *, note: Note = UNSAID
    ) -> BrokerResult[None]:
        """Run at most so many tasks of a queue at once; `None` goes back to the configuration."""
        return self._change(control.limit_steps(queue, max_concurrency, note))

    async def limit_queue_async(
        self, queue: str, max_concurrency: int | None, *, note: Note = UNSAID
    ) -> BrokerResult[None]:
        return await self._change_async(control.limit_steps(queue, max_concurrency, note))

    def drain_worker(self, worker: str, *, note: Note = UNSAID) -> BrokerResult[str]:
        """Let a worker finish what it runs and end; within five seconds it takes nothing new.

        `worker` is `host:pid`, or the beginning of a worker's id. Returns the whole id.
        """
        return self._change(control.drain_steps(worker, note))

    async def drain_worker_async(self, worker: str, *, note: Note = UNSAID) -> BrokerResult[str]:
        return await self._change_async(control.drain_steps(worker, note))

    def audit(self, *, limit: int = 50) -> BrokerResult[list[AuditEntry]]:
        """Who steered what, and why; the latest first."""
        return self._look(control.audit_steps(limit))

    async def audit_async(self, *, limit: int = 50) -> BrokerResult[list[AuditEntry]]:
        return await self._look_async(control.audit_steps(limit))

    def _reprioritise_steps(
        self, priority: int, target: Target, note: Note, *, dry_run: bool
    ) -> Steps[TaskCount]:
        action = actions.reprioritise(priority)
        return (yield from act_steps(action, target, note, dry_run=dry_run))

    @property
    def _queue_names(self) -> list[str]:
        return self._app.get_valid_queue_names()

    def _look(self, steps: Steps[T]) -> BrokerResult[T]:
        return perform(self._database, steps, BrokerErrorCode.MONITORING_QUERY_FAILED)

    async def _look_async(self, steps: Steps[T]) -> BrokerResult[T]:
        return await perform_async(self._database, steps, BrokerErrorCode.MONITORING_QUERY_FAILED)

    def _change(self, steps: Steps[T]) -> BrokerResult[T]:
        return perform(self._database, steps, BrokerErrorCode.CLEANUP_FAILED)

    async def _change_async(self, steps: Steps[T]) -> BrokerResult[T]:
        return await perform_async(self._database, steps, BrokerErrorCode.CLEANUP_FAILED)

    @property
    def _database(self) -> Database:
        return self._app.get_broker().database
