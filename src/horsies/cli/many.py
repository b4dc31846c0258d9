"""`horsies cancel` and `horsies requeue`: one task, or all that match, counted first."""

import sys
from collections.abc import Callable
from typing import Any

import click

from horsies.broker.postgres import PostgresBroker
from horsies.broker.types import BrokerResult
from horsies.cli.locating import takes_app
from horsies.database.tasks import Filter
from horsies.locator import load_app
from horsies.result import Err


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
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


@click.command("cancel")
@_options
@click.option("--running", is_flag=True, help="Also end tasks that are running.")
def cancel(locator: str | None, *, running: bool, **rest: Any) -> None:
    """Withdraw waiting tasks of the app in MODULE; with --running also those being executed."""
    broker = load_app(locator).get_broker()
    if task_id := rest["task_id"]:
        _say_one(broker.cancel_task_sync(task_id, running=running), "cancelled")
        return
    states = ("PENDING", "CLAIMED", "RUNNING") if running else ("PENDING", "CLAIMED")
    _change_many(broker, states, rest, "cancel", lambda w: broker.cancel_tasks(w, running=running))


@click.command("requeue")
@_options
def requeue(locator: str | None, **rest: Any) -> None:
    """Put failed tasks of the app in MODULE back in their queues."""
    broker = load_app(locator).get_broker()
    if task_id := rest["task_id"]:
        _say_one(broker.requeue_task_sync(task_id), "requeued")
        return
    _change_many(broker, ("FAILED",), rest, "requeue", broker.requeue_tasks)


def _change_many(
    broker: PostgresBroker,
    states: tuple[str, ...],
    rest: dict[str, Any],
    verb: str,
    change: Callable[[Filter], BrokerResult[int]],
) -> None:
    wanted = Filter(states, rest["task_name"], rest["queue_name"], rest["tag"])
    count = _value(broker.count_tasks(wanted))
    click.echo(f"{count} task(s) match")
    if count == 0:
        return
    if not rest["yes"]:
        click.confirm(f"{verb} them?", abort=True)
    click.echo(f"{_value(change(wanted))} task(s): {verb} done")


def _say_one(result: BrokerResult[bool], done: str) -> None:
    is_done = _value(result)
    click.echo(done if is_done else f"not {done}: no such task, or not in a state that allows it")
    sys.exit(0 if is_done else 1)


def _value(result: BrokerResult[Any]) -> Any:
    if isinstance(result, Err):
        raise click.ClickException(result.err_value.message)
    return result.ok_value
