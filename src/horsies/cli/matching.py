"""What `cancel` and `requeue` share: filter options, the count of matches, the confirmation."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TypedDict

import click

from horsies.app import Horsies
from horsies.cli.asking import confirm, takes_yes
from horsies.cli.operating import read_filter, takes_words, value_of
from horsies.operations.filters import TaskFilter
from horsies.result.broker import BrokerResult

_PAST = {"cancel": "cancelled", "requeue": "requeued"}


class FilterOptions(TypedDict):
    """The options that `takes_filter` adds, by the names that click gives them."""

    words: tuple[str, ...]
    task_id: str | None
    task_name: str | None
    queue_name: str | None
    tag: str | None
    all_apps: bool
    yes: bool


def takes_filter(function: Callable[..., object]) -> Callable[..., object]:
    """Add [MODULE] [FILTER]... and the options that select tasks to a command."""
    for option in (
        click.option("--all-apps", is_flag=True, help="Also tasks that this app does not define."),
        takes_yes,
        click.option("--tag", help="Only tasks with this tag."),
        click.option("--queue", "queue_name", help="Only tasks in this queue."),
        click.option("--task-name", help="Only tasks with this name."),
        click.option("--id", "task_id", help="Only this task."),
        takes_words,
    ):
        function = option(function)
    return function


def change_matching(
    app: Horsies,
    states: tuple[str, ...],
    wanted: FilterOptions,
    verb: str,
    change: Callable[[TaskFilter], BrokerResult[int]],
) -> None:
    """Print how many tasks match, ask for confirmation, change them, print how many changed."""
    matching = _filter(states, wanted, verb)
    if not wanted["all_apps"]:
        matching = replace(matching, task_names=_own_names(app, wanted["task_name"]))
    count = value_of(app.get_broker().count_tasks(matching))
    click.echo(f"{count} task(s) match")
    if count == 0:
        return
    confirm(f"{verb.capitalize()} them?", yes=wanted["yes"])
    click.echo(f"{value_of(change(matching))} task(s) {_PAST[verb]}")


def _filter(states: tuple[str, ...], wanted: FilterOptions, verb: str) -> TaskFilter:
    found = read_filter(wanted["words"])
    if refused := [status for status in found.statuses if status not in states]:
        raise click.UsageError(
            f"{verb} is for tasks that are {', '.join(states)}, not {refused[0]}"
        )
    return replace(
        found,
        statuses=found.statuses or states,
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


def report_one(is_done: bool, told: str) -> None:
    """Print what happened to one task; the exit code says it too."""
    click.echo(told)
    sys.exit(0 if is_done else 1)
