"""What the commands that change tasks share: filter options, the count of matches, the question."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypedDict

import click

from horsies.app import Horsies
from horsies.cli.asking import confirm, takes_yes
from horsies.cli.operating import (
    as_json,
    find_app,
    print_json,
    read_filter,
    takes_note,
    takes_words,
    value_of,
)
from horsies.cli.printing import echo
from horsies.operations.actions import Target
from horsies.operations.control import Note
from horsies.operations.filters import TaskFilter
from horsies.operations.listing import TaskCount
from horsies.result.broker import BrokerResult


class ChangeOptions(TypedDict):
    """The options that `takes_filter` adds, by the names that click gives them."""

    words: tuple[str, ...]
    task_id: str | None
    task_name: str | None
    queue_name: str | None
    tag: str | None
    all_apps: bool
    note: Note
    dry_run: bool
    is_json: bool
    yes: bool


class Act(Protocol):
    """A call of `app.operations`."""

    def __call__(
        self, target: Target, *, note: Note, dry_run: bool = False
    ) -> BrokerResult[TaskCount]: ...


@dataclass(frozen=True, slots=True)
class Change:
    """What a command does, and in which states of a task; without a filter, in the `usual`."""

    verb: str
    past: str
    states: tuple[str, ...]
    usual: tuple[str, ...] = ()


def takes_filter(function: Callable[..., object]) -> Callable[..., object]:
    """Add [MODULE] [FILTER]... and the options that select tasks to a command."""
    for option in (
        as_json,
        takes_yes,
        click.option("--dry-run", is_flag=True, help="Only count."),
        takes_note,
        click.option("--all-apps", is_flag=True, help="Also tasks that this app does not define."),
        click.option("--tag", help="Only tasks with this tag."),
        click.option("--queue", "queue_name", help="Only tasks in this queue."),
        click.option("--task-name", help="Only tasks with this name."),
        click.option("--id", "task_id", help="Only this task; the beginning of its id will do."),
        takes_words,
    ):
        function = option(function)
    return function


def change_tasks(
    locator: str | None,
    change: Change,
    wanted: ChangeOptions,
    act: Callable[[Horsies], Act],
) -> None:
    """Change one task, or count those that match, ask for confirmation, and change them."""
    if wanted["is_json"] and not (wanted["yes"] or wanted["dry_run"] or wanted["task_id"]):
        raise click.UsageError("--json cannot ask: add --yes, or --dry-run to count only")
    app = find_app(locator)
    if wanted["task_id"]:
        _change_one(app, change, wanted, act(app))
        return
    matching = _filter(change, wanted)
    if not wanted["all_apps"]:
        matching = replace(matching, task_names=_own_names(app, wanted["task_name"]))
    note = wanted["note"]
    found = value_of(act(app)(matching, note=note, dry_run=True))
    if not wanted["is_json"]:
        echo(f"{found} task(s) match")
    changed = 0
    if found.number and not wanted["dry_run"]:
        confirm(f"{change.verb.capitalize()} them?", yes=wanted["yes"])
        changed = value_of(act(app)(matching, note=note)).number
        if not wanted["is_json"]:
            echo(f"{changed:,} task(s) {change.past}")
    if wanted["is_json"]:
        print_json({"matched": found.number, "is_least": found.is_least, "changed": changed})


def _change_one(app: Horsies, change: Change, wanted: ChangeOptions, act: Act) -> None:
    """Print what happened to one task; the exit code says it too."""
    task_id = value_of(app.operations.find_id(wanted["task_id"] or ""))
    note, is_dry = wanted["note"], wanted["dry_run"]
    found = value_of(app.operations.task(task_id))
    status = "" if found is None else str(found.info.status.value)
    number = value_of(act(task_id, note=note, dry_run=is_dry)).number
    if wanted["is_json"]:
        print_json({"id": task_id, "was": status, "changed": 0 if is_dry else number})
    elif number and is_dry:
        echo(f"1 task(s) match: {task_id}")
    elif number:
        asked = "running: its worker was asked to end it"
        echo(asked if change.verb == "cancel" and status == "RUNNING" else change.past)
    else:
        echo(f"not {change.past}: {_refusal(change, status)}")
    sys.exit(0 if number else 1)


def _refusal(change: Change, status: str) -> str:
    if change.verb == "cancel" and status == "RUNNING":
        return "it is running; add --running to end it"
    if status in change.states:
        return "it belongs to a workflow, its deadline has passed, or its key is taken"
    return f"it is {status}; {change.verb} is for tasks that are {', '.join(change.states)}"


def _filter(change: Change, wanted: ChangeOptions) -> TaskFilter:
    found = read_filter(wanted["words"])
    if refused := [status for status in found.statuses if status not in change.states]:
        raise click.UsageError(
            f"{change.verb} is for tasks that are {', '.join(change.states)}, not {refused[0]}"
        )
    return replace(
        found,
        statuses=found.statuses or change.usual or change.states,
        task_name=wanted["task_name"] or found.task_name,
        queue_name=wanted["queue_name"] or found.queue_name,
        tag=wanted["tag"] or found.tag,
    )


def _own_names(app: Horsies, task_name: str | None) -> tuple[str, ...]:
    """The tasks of this app: several apps may share a database."""
    app.import_task_modules()
    if not app.tasks:
        raise click.UsageError(
            "no app with tasks is named: give MODULE, or add --all-apps to reach all tasks"
        )
    if task_name is not None and "*" not in task_name and task_name not in app.tasks:
        raise click.ClickException(
            f"this app has no task {task_name!r}; add --all-apps to reach tasks of other apps"
        )
    return tuple(app.list_tasks())
