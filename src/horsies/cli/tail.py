"""`horsies tail`: follow tasks as they end."""

import time
from dataclasses import replace

import click

from horsies.app import Horsies
from horsies.cli.console import make_console
from horsies.cli.operating import as_json, print_json, takes_filter, value_of
from horsies.clock import utc_now
from horsies.drawing.task_text import in_words
from horsies.drawing.workflow_text import status_text
from horsies.operations.filters import ENDED, TaskFilter
from horsies.operations.words import duration

_PAGE = 1_000
_PAUSE_S = 0.5


@click.command("tail")
@takes_filter
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many tasks.")
@as_json
def command(app: Horsies, wanted: TaskFilter, count: int | None, *, is_json: bool) -> None:
    """Print tasks as they end, until Ctrl-C.

    FILTER is as in `horsies tasks`. `ended-since:10m` begins with those of the last ten minutes.
    """
    console = make_console()
    since = wanted.ended_since or utc_now()
    statuses = tuple(status for status in wanted.statuses if status in ENDED) or ENDED
    printed: dict[str, object] = {}
    while count is None or len(printed) < count:
        wanted = replace(wanted, statuses=statuses, ended_since=since)
        page = value_of(app.operations.tasks(wanted, limit=_PAGE))
        for task in reversed(page.tasks):
            if printed.get(task.id) == task.ended_at or len(printed) == count:
                continue
            printed[task.id] = task.ended_at
            since = task.ended_at or since
            if is_json:
                print_json(task)
                continue
            took = None if task.started_at is None else since - task.started_at
            console.print(
                f"{since.astimezone():%T}", status_text(f"{task.status:9}"), task.id,
                task.task_name, duration(took), in_words(task), soft_wrap=True,
            )  # fmt: skip
        if count is None or len(printed) < count:
            time.sleep(_PAUSE_S)
