"""What can be done to a task, in the list and in its detail: each asks first."""

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from horsies.operations.filters import TaskFilter
from horsies.operations.listing import TaskCount
from horsies.operations.operations import Operations
from horsies.result import Err
from horsies.tui.view import NOTE, Act, Told

if TYPE_CHECKING:
    from textual.app import App

T = TypeVar("T")


class Change(Protocol):
    """Ask, act and tell."""

    def __call__(self, question: str, act: Act[T], told: Told[T]) -> None: ...


class TaskActions:
    """Enqueue again, run again, cancel."""

    def __init__(self, operations: Operations, change: Change) -> None:
        self._operations = operations
        self._change = change

    def requeue(self, task_id: str, name: str) -> None:
        self._change(
            f"Enqueue {name} again? The same task runs once more.\n{task_id}",
            lambda: self._operations.requeue_async(task_id, note=NOTE),
            lambda count: _told(count, "enqueued again", "only failed and cancelled tasks are"),
        )

    def rerun(self, task_id: str, name: str) -> None:
        self._change(
            f"Run {name} again as a new task, with the same input?\n{task_id}",
            lambda: self._operations.rerun_async(task_id, note=NOTE),
            lambda new_id: f"sent as {new_id}",
        )

    def cancel(self, task_id: str, name: str, status: str) -> None:
        is_running = status == "RUNNING"
        effect = "Its worker is asked to end it." if is_running else "It will not start."
        self._change(
            f"Cancel {name}? {effect}\n{task_id}",
            lambda: self._operations.cancel_async(task_id, running=is_running, note=NOTE),
            lambda count: _told(count, "cancelled", "it has ended or belongs to a workflow"),
        )

    async def requeue_all(self, app: "App[Any]", wanted: TaskFilter) -> None:
        """All failed and cancelled tasks that match, however many are shown."""
        counted = await self._operations.requeue_async(wanted, dry_run=True)
        if isinstance(counted, Err):
            app.notify(counted.err_value.message, severity="warning")
            return
        if not counted.ok_value.number:
            app.notify("no listed task has failed or was cancelled", severity="warning")
            return
        self._change(
            f"Enqueue {counted.ok_value} failed or cancelled tasks again?",
            lambda: self._operations.requeue_async(wanted, note=NOTE),
            lambda count: f"{count} enqueued again",
        )


def _told(count: TaskCount, done: str, why_not: str) -> str:
    return done if count.number else f"not {done}: {why_not}"
