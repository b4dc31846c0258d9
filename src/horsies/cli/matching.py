"""What `cancel` and `requeue` share: the filter options, the count first, the question."""

import sys
from collections.abc import Callable
from typing import Any

import click

from horsies.broker.postgres import PostgresBroker
from horsies.cli.locating import takes_app
from horsies.operations.filters import TaskFilter
from horsies.result import Err
from horsies.result.broker import BrokerResult


def takes_filter(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the app and the options that choose tasks."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--tag", help="Only tasks with this tag."),
        click.option("--queue", "queue_name", help="Only tasks of this queue."),
        click.option("--task-name", help="Only tasks of this name."),
        click.option("--id", "task_id", help="Just this task."),
        takes_app,
    ):
        function = option(function)
    return function


def change_matching(
    broker: PostgresBroker,
    states: tuple[str, ...],
    wanted: dict[str, Any],
    verb: str,
    change: Callable[[TaskFilter], BrokerResult[int]],
) -> None:
    """Say how many tasks match, ask, change them, say how many were changed."""
    matching = TaskFilter(states, wanted["task_name"], wanted["queue_name"], wanted["tag"])
    count = _value(broker.count_tasks(matching))
    click.echo(f"{count} task(s) match")
    if count == 0:
        return
    if not wanted["yes"]:
        click.confirm(f"{verb} them?", abort=True)
    click.echo(f"{_value(change(matching))} task(s): {verb} done")


def report_one(result: BrokerResult[bool], done: str) -> None:
    """Say what became of one task, also by the exit code."""
    is_done = _value(result)
    click.echo(done if is_done else f"not {done}: no such task, or not in a state that allows it")
    sys.exit(0 if is_done else 1)


def _value(result: BrokerResult[Any]) -> Any:
    if isinstance(result, Err):
        raise click.ClickException(result.err_value.message)
    return result.ok_value
