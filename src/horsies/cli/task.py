"""`horsies task`: one task in full."""

import click

from horsies.app import Horsies
from horsies.cli.console import make_console
from horsies.cli.operating import as_json, print_json, takes_task, value_of
from horsies.cli.task_view import print_detail
from horsies.operations.detail import without_secrets


@click.command("task")
@takes_task
@as_json
def command(app: Horsies, task_id: str, *, is_json: bool) -> None:
    """Show one task: arguments, timeline, attempts, result or error, output.

    ID may be the beginning of an id. Exits with 1 if there is no such task.
    """
    task = value_of(app.operations.task(task_id))
    if task is None:
        raise click.ClickException(f"there is no task {task_id} any more")
    task = without_secrets(task, app.definition(task.info.task_name))
    print_json(task) if is_json else print_detail(make_console(), task)
