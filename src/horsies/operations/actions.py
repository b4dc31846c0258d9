"""Change tasks: one, a list, or all that match a filter; `dry_run` only counts them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

from horsies.database.functions import call
from horsies.database.sql_files import query
from horsies.database.statement import Receipt, Scalar, Statement
from horsies.operations.cancel import CancelledTasks
from horsies.operations.control import Note, record
from horsies.operations.filters import ENDED, TaskFilter
from horsies.operations.listing import TaskCount, count_steps
from horsies.operations.paging import for_all_matching
from horsies.operations.statements import cancel_tasks, request_cancel, requeue_tasks
from horsies.operations.steps import RefusedError, Steps

Target: TypeAlias = str | Sequence[str] | TaskFilter
_LISTED_AT_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Action:
    """What is done to tasks, the states that allow it, and the statement for some ids."""

    name: str
    states: tuple[str, ...]
    change: Callable[[Sequence[str]], Statement[Receipt]]
    after: Callable[[Sequence[Receipt]], Steps[None]] | None = None

    def steps(self, task_ids: Sequence[str]) -> Steps[int]:
        """Do it to these; how many were changed."""
        receipts: list[Receipt] = yield self.change(sorted(task_ids))
        if self.after is not None:
            yield from self.after(receipts)
        return sum(receipt.outcome != "refused" for receipt in receipts)


def cancel(told: CancelledTasks, *, running: bool) -> Action:
    states = ("PENDING", "CLAIMED", "RUNNING") if running else ("PENDING", "CLAIMED")
    return Action("cancel", states, request_cancel if running else cancel_tasks, told.note)


def requeue(*, include_completed: bool) -> Action:
    states = ("FAILED", "CANCELLED", *(["COMPLETED"] if include_completed else []))
    return Action(
        "requeue", states, lambda ids: requeue_tasks(ids, include_completed=include_completed)
    )


def reschedule(run_at: datetime | None) -> Action:
    return Action(
        "reschedule",
        ("PENDING",),
        lambda ids: call("reschedule_tasks", Receipt, task_ids=ids, due_at=run_at),
    )


def reprioritise(priority: int) -> Action:
    if not 1 <= priority <= 100:
        raise RefusedError(f"a priority is 1 to 100, not {priority}")
    return Action(
        "reprioritise",
        ("PENDING",),
        lambda ids: call("reprioritise_tasks", Receipt, task_ids=ids, new_priority=priority),
    )


def delete() -> Action:
    return Action("delete", ENDED, lambda ids: call("delete_tasks", Receipt, task_ids=ids))


def act_steps(action: Action, target: Target, note: Note, *, dry_run: bool) -> Steps[TaskCount]:
    """Do it and record it; return how many tasks were changed, or would be."""
    if isinstance(target, TaskFilter):
        wanted = _allowed(action, target)
        if dry_run:
            return (yield from count_steps(wanted, is_plain=True))
        number = yield from for_all_matching(wanted, action.steps)
        said = ", ".join(f"{name} {value}" for name, value in _said(wanted))
        yield record(note, action.name, f"tasks: {said}", {"changed": number})
        return TaskCount(number, is_least=False)
    ids = [target] if isinstance(target, str) else list(target)
    if len(ids) > _LISTED_AT_MOST:
        raise RefusedError(f"give at most {_LISTED_AT_MOST:,} ids at once, or a filter")
    if dry_run:
        parameters = {"ids": ids, "statuses": list(action.states)}
        ((found,),) = yield Statement(query("operations", "count_ids"), parameters, Scalar)
        return TaskCount(found, is_least=False)
    number = yield from action.steps(ids)
    details: dict[str, Any] = {"changed": number, "asked": len(ids)}
    yield record(note, action.name, f"tasks {', '.join(ids[:20])}", details)
    return TaskCount(number, is_least=False)


def _allowed(action: Action, wanted: TaskFilter) -> TaskFilter:
    """The filter, narrowed to the states in which the action does anything."""
    asked = wanted.found_statuses
    states = tuple(status for status in action.states if not asked or status in asked)
    if not states:
        raise RefusedError(
            f"{action.name} is for tasks that are {', '.join(action.states)}, "
            f"not {', '.join(asked)}"
        )
    return replace(wanted, statuses=states)


def _said(wanted: TaskFilter) -> list[tuple[str, object]]:
    fields = ((name, getattr(wanted, name)) for name in TaskFilter.__dataclass_fields__)
    return [(name, value) for name, value in fields if value]
