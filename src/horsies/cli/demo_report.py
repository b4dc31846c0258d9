"""The report of `horsies demo`: numbers from the rows, one failure explained, next steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import quantiles

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from horsies import TaskInfo, TaskStatus

_MADE_TO_FAIL = {"charge_card": "CARD_DECLINED", "crash_child": "WORKER_CRASHED"}
_BULK = ("fetch_price", "make_thumbnail", "write_receipt")


@dataclass(frozen=True, slots=True)
class Story:
    """The rows of all tasks of a demo, by task name."""

    rows: Mapping[str, Sequence[TaskInfo]]
    places: Mapping[str, str]

    def problems(self) -> list[str]:
        """Describe the tasks that did not end as the demo intends."""
        return [
            f"{name} ended as {row.status.value} ({row.error_code})"
            for name, rows in self.rows.items()
            for row in rows
            if row.error_code != _MADE_TO_FAIL.get(name)
        ]


def print_summary(console: Console, story: Story) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("task", "runs in"):
        table.add_column(column)
    for column in ("tasks", "failed", "retries", "p50", "p95"):
        table.add_column(column, justify="right")
    for name, rows in story.rows.items():
        failed = sum(row.status is TaskStatus.FAILED for row in rows)
        table.add_row(
            name,
            story.places[name],
            str(len(rows)),
            f"[red]{failed}[/]" if failed else "0",
            str(sum(row.retry_count for row in rows)),
            *(_percentiles(rows) if name in _BULK else ("", "")),
        )
    console.print(table)
    console.print(_throughput([row for name in _BULK for row in story.rows[name]]))
    console.print(
        "p50 and p95 are from send to finish, for tasks sent in one burst, from the stored rows."
    )
    _print_failure(console, story.rows["charge_card"][0])
    _print_extras(console, story)


def _percentiles(rows: Sequence[TaskInfo]) -> tuple[str, str]:
    cuts = quantiles((_seconds(_latency(row)) for row in rows), n=20)
    return f"{cuts[9] * 1000:.0f} ms", f"{cuts[18] * 1000:.0f} ms"


def _throughput(rows: Sequence[TaskInfo]) -> str:
    sent = min(row.sent_at for row in rows if row.sent_at)
    done = max(row.completed_at for row in rows if row.completed_at)
    seconds = (done - sent).total_seconds()
    pace = f"{len(rows) / seconds:.0f} tasks/s"
    return f"The {len(rows)} tasks that wait or compute took {seconds:.2f} s: [bold]{pace}[/]"


def _print_failure(console: Console, row: TaskInfo) -> None:
    assert row.result is not None
    assert row.attempts is not None
    error = row.result.err_value
    console.print("\n[bold]One failure, explained[/]")
    console.print(f"{row.task_name} {row.task_id}", soft_wrap=True)
    console.print(f"[red]{error.error_code}[/]: {error.message}", soft_wrap=True)
    console.print(
        "The task raised an exception. Its exception_mapper turned it into this code. Its"
    )
    console.print(
        "retry_policy lists the code, so it was retried twice, a second apart, and then FAILED."
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("attempt", "started", "outcome", "error code", "then"):
        table.add_column(column)
    for attempt in sorted(row.attempts, key=lambda attempt: attempt.attempt):
        table.add_row(
            str(attempt.attempt),
            f"{attempt.started_at:%H:%M:%S.%f}"[:-3],
            attempt.outcome,
            attempt.error_code,
            "retry" if attempt.will_retry else "ended",
        )
    console.print(table)


def _print_extras(console: Console, story: Story) -> None:
    crashed, reminder = story.rows["crash_child"], story.rows["send_reminder"][0]
    assert reminder.started_at is not None
    assert reminder.sent_at is not None
    waited = _seconds(reminder.started_at - reminder.sent_at)
    console.print("[bold]Also seen[/]")
    console.print(f"crash_child    {len(crashed)} children called os._exit(13); each task ended as")
    console.print("               WORKER_CRASHED, and the worker and all other tasks went on")
    console.print("send_reminder  sent twice with one unique_key, but stored once;")
    console.print(f"               sent with delay=2, started after {waited:.2f} s")


def print_next_steps(console: Console, *, is_embedded: bool) -> None:
    steps = {
        "horsies init my_project": "create a small project that runs at once",
        "horsies get-docs": "write the documentation to .horsies-docs",
        "horsies --help": "list all commands",
    }
    if is_embedded:
        steps["horsies pg psql"] = "look at the rows: table horsies_tasks;"
    console.print("\n[bold]Where to go next[/]")
    for command, meaning in steps.items():
        console.print(f"  {command:<24} [dim]{meaning}[/]")


def _latency(row: TaskInfo) -> timedelta:
    assert row.completed_at is not None
    assert row.sent_at is not None
    return row.completed_at - row.sent_at


def _seconds(duration: timedelta) -> float:
    return duration.total_seconds()
