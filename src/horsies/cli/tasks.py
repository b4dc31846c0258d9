"""`horsies tasks`: list the tasks that match a filter."""

import click

from horsies.app import Horsies
from horsies.cli.console import make_console
from horsies.cli.operating import as_json, print_json, read_age, takes_filter, value_of
from horsies.cli.printing import echo
from horsies.cli.task_view import print_stats, print_tasks
from horsies.operations.filters import TaskFilter


@click.command("tasks")
@takes_filter
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--before", help="Go on where the last page ended.")
@click.option("--count", "is_count", is_flag=True, help="Only count, up to 10,000.")
@click.option("--stats", metavar="AGE", help="Rates and run times by task name, such as 1h.")
@as_json
def command(
    app: Horsies,
    wanted: TaskFilter,
    limit: int,
    before: str | None,
    stats: str | None,
    *,
    is_count: bool,
    is_json: bool,
) -> None:
    """List tasks, newest first.

    \b
    Example:  horsies tasks status:failed task:charge_* since:2h
              horsies tasks shop:app queue:mail kwargs.order=42

    \b
    FILTER is any of these; tasks must match all:
      status:failed,expired   one or more states; also `active` and `ended`
      task:charge_*           a task name; * stands for any text
      queue:mail  tag:vip     a queue, a tag
      error:TASK_TIMEOUT      an error code; * stands for any text
      worker:host-a           a host, or the beginning of a worker's id
      since:2h  until:10m     when it was sent: an age, or a time
      ended-since:  ended-until:   when it ended
      kwargs.order=42         an argument; args.0=42 by position
      0193e1                  the beginning of an id
    """
    console = make_console()
    if stats is not None:
        found = value_of(app.operations.task_stats(window=read_age("--stats", stats)))
        print_json(found) if is_json else print_stats(console, found)
    elif is_count:
        count = value_of(app.operations.count(wanted))
        print_json(count) if is_json else echo(str(count))
    else:
        page = value_of(app.operations.tasks(wanted, limit=limit, before=before))
        print_json(page) if is_json else print_tasks(console, page)
