"""What the screens of one task and one workflow tell."""

from typing import Any

from rich.text import Text

from horsies.drawing.graph import graph_lines
from horsies.drawing.task_text import tracebacks
from horsies.drawing.workflow_text import progress
from horsies.operations.detail import TaskDetail
from horsies.operations.why import Explanation
from horsies.operations.words import duration, moment
from horsies.results.reading import AnyResult
from horsies.workflows.overview import WorkflowOverview

_LOG_LINES = 200
_RESULT_LENGTH = 200


def task_story(task: TaskDetail, explained: Explanation) -> Text:
    """Why it stands where it stands, its input, timeline, attempts, result and output."""
    info, row = task.info, task.row
    text = Text(
        f"queue {info.queue_name} · priority {info.priority} · "
        f"retries used {info.retry_count} of {info.max_retries}",
        "dim",
    )
    for reason in explained.reasons:
        text.append(f"\n{reason.text}", "not dim")
        if reason.cure:
            text.append(f"\n  → {reason.cure}", "dim")
    facts = {"args": row.args, "kwargs": row.kwargs, "workflow": row.workflow_id}
    for name, fact in facts.items():
        if fact and fact not in ("[]", "{}"):
            _section(text, name.capitalize(), str(fact))
    _append_history(text, task)
    if info.result is not None:
        _section(text, "Result", result_text(info.result))
    if info.failed_reason:
        _section(text, "Reason", info.failed_reason)
    for title, traceback in tracebacks(info.attempts or ()):
        _section(text, title, traceback)
    for log in task.logs:
        lines = log.log.rstrip().splitlines()[-_LOG_LINES:]
        _section(text, f"Output of attempt {log.attempt}", "\n".join(lines))
    return text


def _append_history(text: Text, task: TaskDetail) -> None:
    info, row = task.info, task.row
    _section(text, "Timeline")
    for at, what in task.timeline:
        text.append(f"\n{moment(at, row.read_at)}  {what}", "not dim")
    _section(text, "Attempts")
    for one in info.attempts or ():
        length = duration(one.finished_at - one.started_at)
        code = one.error_code or ""
        text.append(f"\n{one.attempt:>3}  {one.outcome:<10} {length:>9}  {code}", "not dim")
    if not info.attempts:
        text.append("\nnone has ended yet", "dim")


def workflow_story(overview: WorkflowOverview, results: dict[str, str], width: int) -> Text:
    """How far it is, its graph with the state of each node, and what nodes returned."""
    text = Text(progress(overview.workflow), "dim")
    workflow = overview.workflow
    if workflow.error_code is not None:
        text.append(f"\n{workflow.error_code}: {workflow.error_message or ''}", "not dim")
    _section(text, "Nodes")
    for line in graph_lines(overview, width, is_whole=False):
        text.append("\n")
        text.append_text(line)
    if results:
        _section(text, "Results")
        for node, told in results.items():
            text.append(f"\n{node}  {told[:_RESULT_LENGTH]}", "not dim")
    return text


def _section(text: Text, title: str, body: str | None = None) -> None:
    text.append(f"\n\n{title}", "not dim bold")
    if body is not None:
        text.append(f"\n{body}", "not dim")


def result_text(result: AnyResult) -> str:
    """The value, or the code and message of the error."""
    if result.is_ok():
        return repr(result.ok_value)
    error: Any = result.err_value
    code = getattr(error.error_code, "value", error.error_code)
    return f"{code}: {error.message or ''}"
