"""What `cancel` and `requeue` share: filter options, the count of matches, the confirmation."""

import sys
from collections.abc import Callable
from typing import TypedDict, TypeVar

import click

from horsies.app import Horsies
from horsies.cli.locating import takes_app
from horsies.locator import require_tasks
from horsies.operations.filters import TaskFilter
from horsies.result import Err
from horsies.result.broker import BrokerResult

T = TypeVar("T")
_PAST = {"cancel": "cancelled", "requeue": "requeued"}


class FilterOptions(TypedDict):
    """The options that `takes_filter` adds, by the names that click gives them."""

    task_id: str | None
    task_name: str | None
    queue_name: str | None
    tag: str | None
    all_apps: bool
    yes: bool


def takes_filter(function: Callable[..., object]) -> Callable[..., object]:
    """Add the app argument and the options that select tasks to a command."""
    for option in (
        click.option("--all-apps", is_flag=True, help="Also tasks that this app does not define."),
        click.option("--yes", is_flag=True, help="Do not ask for confirmation."),
        click.option("--tag", help="Only tasks with this tag."),
        click.option("--queue", "queue_name", help="Only tasks in this queue."),
        click.option("--task-name", help="Only tasks with this name."),
        click.option("--id", "task_id", help="Only this task."),
        takes_app,
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
    matching = TaskFilter(
        states,
        wanted["task_name"],
        wanted["queue_name"],
        wanted["tag"],
        None if wanted["all_apps"] else _own_names(app, wanted["task_name"]),
    )
    count = value_of(app.get_broker().count_tasks(matching))
    click.echo(f"{count} task(s) match")
    if count == 0:
        return
    if not wanted["yes"]:
        click.confirm(f"{verb.capitalize()} them?", abort=True)
    click.echo(f"{value_of(change(matching))} task(s) {_PAST[verb]}")


def _own_names(app: Horsies, task_name: str | None) -> tuple[str, ...]:
    """The tasks of this app: several apps may share a database."""
    app.import_task_modules()
    require_tasks(app)
    if task_name is not None and task_name not in app.tasks:
        raise click.ClickException(
            f"this app has no task {task_name!r}; add --all-apps to reach tasks of other apps"
        )
    return tuple(app.list_tasks())


def report_one(is_done: bool, told: str) -> None:
    """Print what happened to one task; the exit code says it too."""
    click.echo(told)
    sys.exit(0 if is_done else 1)


def value_of(result: BrokerResult[T]) -> T:
    """The value, or the end of the command with its error."""
    if isinstance(result, Err):
        raise click.ClickException(result.err_value.message)
    return result.ok_value
