"""What `cancel` and `requeue` share: filter options, the count of matches, the confirmation."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TypedDict, TypeVar

import click

from horsies.broker.postgres import PostgresBroker
from horsies.cli.operating import read_filter, takes_words
from horsies.operations.filters import TaskFilter
from horsies.result import Err
from horsies.result.broker import BrokerResult

T = TypeVar("T")
_PAST = {"cancel": "cancelled", "requeue": "requeued"}


class FilterOptions(TypedDict):
    """The options that `takes_filter` adds, by the names that click gives them."""

    words: tuple[str, ...]
    task_id: str | None
    task_name: str | None
    queue_name: str | None
    tag: str | None
    yes: bool


def takes_filter(function: Callable[..., object]) -> Callable[..., object]:
    """Add [MODULE] [FILTER]... and the options that select tasks to a command."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask for confirmation."),
        click.option("--tag", help="Only tasks with this tag."),
        click.option("--queue", "queue_name", help="Only tasks in this queue."),
        click.option("--task-name", help="Only tasks with this name."),
        click.option("--id", "task_id", help="Only this task."),
        takes_words,
    ):
        function = option(function)
    return function


def change_matching(
    broker: PostgresBroker,
    states: tuple[str, ...],
    wanted: FilterOptions,
    verb: str,
    change: Callable[[TaskFilter], BrokerResult[int]],
) -> None:
    """Print how many tasks match, ask for confirmation, change them, print how many changed."""
    matching = _filter(states, wanted, verb)
    count = _value(broker.count_tasks(matching))
    click.echo(f"{count} task(s) match")
    if count == 0:
        return
    if not wanted["yes"]:
        click.confirm(f"{verb.capitalize()} them?", abort=True)
    click.echo(f"{_value(change(matching))} task(s) {_PAST[verb]}")


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


def report_one(result: BrokerResult[bool], done: str) -> None:
    """Print what happened to one task; the exit code says it too."""
    is_done = _value(result)
    click.echo(done if is_done else f"not {done}: no such task, or not in a state that allows it")
    sys.exit(0 if is_done else 1)


def _value(result: BrokerResult[T]) -> T:
    if isinstance(result, Err):
        raise click.ClickException(result.err_value.message)
    return result.ok_value
