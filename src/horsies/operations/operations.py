"""`app.operations`: see, explain and steer a running system. All viewers use only this."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from horsies.codes import BrokerErrorCode
from horsies.operations import actions, control, failures, prune
from horsies.operations.actions import Target, act_steps
from horsies.operations.cancel import CancelledTasks
from horsies.operations.control import UNSAID, Note
from horsies.operations.filters import ENDED
from horsies.operations.listing import TaskCount
from horsies.operations.queues import HOUR
from horsies.operations.steering import rerun_steps, steer_steps
from horsies.operations.steps import Steps, perform, perform_async
from horsies.operations.viewing import Viewing
from horsies.result.broker import BrokerResult
from horsies.workflows import steering as workflows

T = TypeVar("T")


class Operations(Viewing):
    """See, explain and steer a running system, from any process that reaches its database.

    What changes something takes a `Note` with who and why, for `horsies_audit`.
    """

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
        told = CancelledTasks(self._app.on)
        action = actions.cancel(told, running=running)
        done = self._change(act_steps(action, target, note, dry_run=dry_run))
        self._tell(told)
        return done

    async def cancel_async(
        self, target: Target, *, running: bool = False, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        told = CancelledTasks(self._app.on)
        action = actions.cancel(told, running=running)
        done = await self._change_async(act_steps(action, target, note, dry_run=dry_run))
        await told.tell_async()
        return done

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

    def requeue_failures(
        self, key: str, *, window: timedelta = HOUR, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        """Put the tasks of a group of `failures()` back in their queues."""
        return self._change(failures.requeue_steps(key, window, note, dry_run=dry_run))

    async def requeue_failures_async(
        self, key: str, *, window: timedelta = HOUR, note: Note = UNSAID, dry_run: bool = False
    ) -> BrokerResult[TaskCount]:
        return await self._change_async(failures.requeue_steps(key, window, note, dry_run=dry_run))

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

    def record(
        self, action: str, target: str, *, note: Note = UNSAID, details: dict[str, object]
    ) -> BrokerResult[None]:
        """Keep in the audit what was done by other means."""
        return self._change(control.record_steps(action, target, note, details))

    async def record_async(
        self, action: str, target: str, *, note: Note = UNSAID, details: dict[str, object]
    ) -> BrokerResult[None]:
        return await self._change_async(control.record_steps(action, target, note, details))

    def rerun(self, task_id: str, *, note: Note = UNSAID) -> BrokerResult[str]:
        """Send an ended task once more, with the same input; returns the id of the new one."""
        return self._change(rerun_steps(task_id, note))

    async def rerun_async(self, task_id: str, *, note: Note = UNSAID) -> BrokerResult[str]:
        return await self._change_async(rerun_steps(task_id, note))

    def pause_workflow(self, workflow_id: str, *, note: Note = UNSAID) -> BrokerResult[bool]:
        """Let what runs finish and start nothing more; False if it was not running."""
        return self._change(steer_steps("pause", workflow_id, workflows.pause(workflow_id), note))

    async def pause_workflow_async(
        self, workflow_id: str, *, note: Note = UNSAID
    ) -> BrokerResult[bool]:
        return await self._change_async(
            steer_steps("pause", workflow_id, workflows.pause(workflow_id), note)
        )

    def resume_workflow(self, workflow_id: str, *, note: Note = UNSAID) -> BrokerResult[bool]:
        """Let a paused workflow go on; False if it was not paused."""
        return self._change(steer_steps("resume", workflow_id, workflows.resume(workflow_id), note))

    async def resume_workflow_async(
        self, workflow_id: str, *, note: Note = UNSAID
    ) -> BrokerResult[bool]:
        return await self._change_async(
            steer_steps("resume", workflow_id, workflows.resume(workflow_id), note)
        )

    def cancel_workflow(self, workflow_id: str, *, note: Note = UNSAID) -> BrokerResult[bool]:
        """Start nothing more of a workflow, for good; False if it had ended."""
        return self._change(steer_steps("cancel", workflow_id, workflows.cancel(workflow_id), note))

    async def cancel_workflow_async(
        self, workflow_id: str, *, note: Note = UNSAID
    ) -> BrokerResult[bool]:
        return await self._change_async(
            steer_steps("cancel", workflow_id, workflows.cancel(workflow_id), note)
        )

    def retry_workflow(
        self, workflow_id: str, *, from_node: str | None = None, note: Note = UNSAID
    ) -> BrokerResult[bool]:
        """Run what failed again, or a node and all behind it; False if nothing was to retry."""
        operation = workflows.retry(workflow_id, from_node)
        return self._change(steer_steps("retry", workflow_id, operation, note))

    async def retry_workflow_async(
        self, workflow_id: str, *, from_node: str | None = None, note: Note = UNSAID
    ) -> BrokerResult[bool]:
        operation = workflows.retry(workflow_id, from_node)
        return await self._change_async(steer_steps("retry", workflow_id, operation, note))

    def _reprioritise_steps(
        self, priority: int, target: Target, note: Note, *, dry_run: bool
    ) -> Steps[TaskCount]:
        action = actions.reprioritise(priority)
        return (yield from act_steps(action, target, note, dry_run=dry_run))

    # A framework whose own transaction performs blocking changes overrides the next two.
    def _change(self, steps: Steps[T]) -> BrokerResult[T]:
        return perform(self._database, steps, BrokerErrorCode.CLEANUP_FAILED)

    def _tell(self, told: CancelledTasks) -> None:
        told.tell()

    async def _change_async(self, steps: Steps[T]) -> BrokerResult[T]:
        return await perform_async(self._database, steps, BrokerErrorCode.CLEANUP_FAILED)
