"""What can be done to many tasks at once: to those that were ticked, or to all of a filter."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from horsies.operations import actions
from horsies.operations.control import UNSAID, Note
from horsies.operations.filter_words import FilterError, parse_filter
from horsies.operations.listing import TaskCount
from horsies.operations.operations import Operations
from horsies.result.broker import BrokerResult
from horsies.web.routes import Form
from horsies.web.visit import RefusedError, value_of, whole_number

Change = Callable[..., Awaitable[BrokerResult[TaskCount]]]


@dataclass(frozen=True, slots=True)
class Target:
    """The tasks that an action is for: a filter, or ids."""

    tasks: actions.Target
    text: str
    ids: tuple[str, ...] = ()

    @classmethod
    def of(cls, form: Form) -> "Target":
        text = form.get("q", "")
        if form.get("scope") == "filter":
            try:
                return cls(parse_filter(text), text)
            except FilterError as error:
                raise RefusedError(str(error)) from error
        ids = tuple(form.all("id"))
        if not ids:
            raise RefusedError("Tick tasks first, or choose all that match the filter.")
        return cls(ids, text, ids)


@dataclass(frozen=True, slots=True)
class BulkAction:
    """One action: its name on the button, what it says afterwards, and how it is done."""

    name: str
    about: str
    done: str
    change: Callable[[Operations, Form], Change]
    is_dangerous: bool = False
    takes_priority: bool = False

    async def count(self, operations: Operations, target: Target, form: Form) -> TaskCount:
        change = self.change(operations, form)
        return value_of(await change(target.tasks, note=UNSAID, dry_run=True))

    async def perform(
        self, operations: Operations, target: Target, form: Form, note: Note
    ) -> TaskCount:
        return value_of(await self.change(operations, form)(target.tasks, note=note))


def _cancel(operations: Operations, _: Form) -> Change:
    return operations.cancel_async


def _cancel_running(operations: Operations, _: Form) -> Change:
    return partial(operations.cancel_async, running=True)


def _requeue(operations: Operations, _: Form) -> Change:
    return operations.requeue_async


def _run_now(operations: Operations, _: Form) -> Change:
    return operations.retry_now_async


def _reprioritise(operations: Operations, form: Form) -> Change:
    priority = whole_number(form.get("priority", "").strip(), 1, 100, "A priority")
    return partial(operations.reprioritise_async, priority=priority)


def _delete(operations: Operations, _: Form) -> Change:
    return operations.delete_async


BULK_ACTIONS = {
    "cancel": BulkAction("Cancel waiting", "Withdraw tasks that wait.", "Cancelled", _cancel),
    "cancel-running": BulkAction(
        "Cancel waiting and running",
        "Withdraw tasks that wait, and ask workers to end those that run.",
        "Cancelled or asked to end",
        _cancel_running,
        is_dangerous=True,
    ),
    "requeue": BulkAction(
        "Requeue", "Put failed and cancelled tasks back into their queues.", "Requeued", _requeue
    ),
    "run-now": BulkAction(
        "Run now", "Do not wait any longer for a retry or a planned start.", "Due now", _run_now
    ),
    "priority": BulkAction(
        "Set priority",
        "Give waiting tasks another priority; lower starts first.",
        "Reprioritised",
        _reprioritise,
        takes_priority=True,
    ),
    "delete": BulkAction(
        "Delete",
        "Delete ended tasks with their attempts and output, for good.",
        "Deleted",
        _delete,
        is_dangerous=True,
    ),
}
