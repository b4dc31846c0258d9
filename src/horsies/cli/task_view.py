"""The screens of the commands that show tasks, queues and workers."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from horsies.cli.operating import local
from horsies.cli.workflow_view import shown_ids
from horsies.drawing.task_text import holds, in_words, took, tracebacks
from horsies.drawing.workflow_text import status_text
from horsies.operations.detail import TaskDetail
from horsies.operations.listing import TaskPage
from horsies.operations.queues import Pace, QueueInfo, SystemStatus, TaskStats, WorkerInfo
from horsies.operations.words import duration, moment
from horsies.results.task_info import TaskProgress

_LOG_LINES = 40
_WIDEST_NAME = 60
_STATE_STYLES = {"alive": "green", "silent": "yellow", "gone": "red"}


def print_tasks(console: Console, page: TaskPage) -> None:
    if not page.tasks:
        console.print("no tasks match" if not page.is_cut_short else "no tasks match so far")
    else:
        table = _table("id", "task", "queue", "status", "sent", ">took", "what")
        ids = shown_ids([task.id for task in page.tasks], console.width)
        for task, shown in zip(page.tasks, ids, strict=True):
            table.add_row(
                shown,
                task.task_name,
                task.queue_name,
                status_text(task.status),
                "" if task.sent_at is None else moment(task.sent_at, task.read_at),
                duration(took(task)),
                in_words(task),
            )
        console.print(table)
    if page.next_before is not None:
        said = "the search stopped here" if page.is_cut_short else "more"
        console.print(
            f"{said}; go on with --before {page.next_before}", style="dim", soft_wrap=True
        )


def print_detail(console: Console, task: TaskDetail) -> None:
    info, row = task.info, task.row
    console.print(
        Text.assemble(
            (info.task_name, "bold"), f"  {info.task_id}  ", status_text(info.status.value)
        ),
        soft_wrap=True,
    )
    console.print(
        f"queue {info.queue_name} · priority {info.priority} · "
        f"retries used {info.retry_count} of {info.max_retries}",
        style="dim",
    )
    facts = {
        "tags": ", ".join(info.tags or ()),
        "unique key": info.unique_key,
        "rerun of": info.rerun_of,
        "workflow": row.workflow_id
        and f"{row.workflow_name} {row.workflow_id}, node {row.node_id}",
        "args": row.args,
        "kwargs": row.kwargs,
        "progress": info.progress and _progress(info.progress, row.read_at),
    }
    for name, fact in facts.items():
        if fact and fact not in ("[]", "{}"):
            console.print(Text(f"{name}: {fact}"), overflow="fold")
    console.print("\nTimeline", style="bold")
    for at, what in task.timeline:
        console.print(Text.assemble("  ", (local(at), "dim"), f"  {what}"), soft_wrap=True)
    _print_result(console, task)
    for title, traceback in tracebacks(info.attempts or ()):
        console.print(f"\n{title}", style="bold")
        console.print(Padding(Text(traceback, "dim"), (0, 0, 0, 2), expand=False))
    for log in task.logs:
        cut = ", only its end was kept" if log.is_truncated else ""
        console.print(Text.assemble("\n", (f"Output of attempt {log.attempt}", "bold"), cut))
        lines = log.log.rstrip().splitlines()
        if len(lines) > _LOG_LINES:
            console.print(
                f"  … {len(lines) - _LOG_LINES} lines before; --json has all", style="dim"
            )
        for line in lines[-_LOG_LINES:]:
            console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def _progress(progress: TaskProgress, now: datetime) -> str:
    share = "" if progress.fraction is None else f" ({progress.fraction:.0%})"
    age = duration(now - progress.updated_at)
    return f"{progress}{share}, told {age} ago by attempt {progress.attempt}"


def _print_result(console: Console, task: TaskDetail) -> None:
    result = task.info.result
    if result is None:
        return
    if result.is_ok():
        console.print("\nResult", style="bold")
        console.print(Padding(Text(repr(result.ok_value)), (0, 0, 0, 2), expand=False))
        return
    error = result.err_value
    console.print("\nError", style="bold")
    code = getattr(error.error_code, "value", error.error_code)
    console.print(Text.assemble("  ", (str(code), "red"), f": {error.message or ''}"))
    if task.info.failed_reason:
        console.print(Text(f"  {task.info.failed_reason}"))


def print_queues(console: Console, queues: Sequence[QueueInfo]) -> None:
    table = _table(
        "queue", ">due", ">oldest", ">later", ">running", ">cap", ">workers", ">per min", ">failed",
        ">start p50", ">p95", ">run p50", ">p95",
    )  # fmt: skip
    for queue in queues:
        table.add_row(
            Text.assemble(queue.name, (" paused", "magenta") if _is_paused(queue) else ""),
            str(queue.due),
            duration(queue.waiting_for),
            str(queue.later),
            str(queue.running_count + queue.claimed_count),
            "" if queue.max_concurrency is None else str(queue.max_concurrency),
            Text(str(queue.worker_count), "red" if not queue.worker_count else ""),
            *_pace(queue.pace),
        )
    console.print(table)


def _is_paused(queue: QueueInfo) -> bool:
    return queue.control is not None and queue.control.paused_at is not None


def print_stats(console: Console, stats: Sequence[TaskStats]) -> None:
    if not stats:
        console.print("no task has ended in this time")
        return
    table = _table("task", ">per min", ">failed", ">start p50", ">p95", ">run p50", ">p95")
    for one in stats:
        table.add_row(one.name, *_pace(one.pace))
    console.print(table)


def _pace(pace: Pace) -> tuple[str, ...]:
    failed = pace.failed_count + pace.expired_count
    return (
        f"{pace.per_minute:,.1f}",
        f"{failed:,}" if failed else "",
        *(_seconds(pace.start_latencies, at) for at in (0, 1)),
        *(_seconds(pace.run_times, at) for at in (0, 1)),
    )


def _seconds(values: Sequence[float], at: int) -> str:
    return duration(timedelta(seconds=values[at])) if values else ""


def print_workers(console: Console, workers: Sequence[WorkerInfo]) -> None:
    if not workers:
        console.print("no worker was seen in this time")
        return
    table = _table(
        "worker", "host", ">pid", "state", "queues", ">running", ">cpu", ">memory", ">up", "runs"
    )
    for worker in workers:
        row = worker.snapshot
        memory = (row.memory_usage_mb or 0) + (row.children_memory_mb or 0)
        table.add_row(
            row.worker_id[:8],
            row.hostname,
            str(row.pid),
            Text(worker.state, _STATE_STYLES[worker.state]),
            ", ".join(row.queues),
            str(len(worker.tasks)),
            "" if row.cpu_percent is None else f"{row.cpu_percent:.0f} %",
            f"{memory:,.0f} MB",
            duration(row.read_at - row.worker_started_at),
            holds(worker),
        )
    console.print(table)


def print_status(console: Console, status: SystemStatus) -> None:
    alive = [worker for worker in status.workers if worker.state == "alive"]
    lost = len(status.workers) - len(alive)
    due = sum(queue.due.number for queue in status.queues)
    least = "+" if any(queue.due.is_least for queue in status.queues) else ""
    running = sum(queue.running_count + queue.claimed_count for queue in status.queues)
    oldest = max((q.waiting_for for q in status.queues if q.waiting_for is not None), default=None)
    console.print(
        Text.assemble(
            ("workers ", "bold"),
            (f"{len(alive)} alive", "green" if alive else "red"),
            f", {lost} not" if lost else "",
        )
    )
    waiting = f", the oldest for {duration(oldest)}" if oldest else ""
    console.print(
        Text.assemble(("tasks   ", "bold"), f"{due:,}{least} due{waiting}, {running:,} in flight")
    )
    pace = status.pace
    console.print(
        Text.assemble(
            ("ended   ", "bold"),
            f"{pace.completed_count:,} completed, ",
            (f"{pace.failed_count:,} failed", "red" if pace.failed_count else ""),
            f", {pace.expired_count:,} expired; {pace.per_minute:,.1f} per minute",
        )
    )
    if status.active_workflows:
        said = ", ".join(f"{n:,} {name}" for name, n in sorted(status.active_workflows.items()))
        console.print(Text.assemble(("flows   ", "bold"), said))
    console.print()
    print_queues(console, status.queues)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        is_right = column.startswith(">")
        name = column.removeprefix(">")
        table.add_column(
            name,
            justify="right" if is_right else "left",
            no_wrap=name != "what",
            overflow="ellipsis",
            # One long name must not take the place of the ids of all rows.
            max_width=None if name in ("id", "what") else _WIDEST_NAME,
        )
    return table
