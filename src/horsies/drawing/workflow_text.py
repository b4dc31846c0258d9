"""States, durations and reasons of workflows and nodes in words and colours."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from rich.text import Text

from horsies.operations.words import duration, moment
from horsies.workflows.overview import WorkflowOverview, name_of
from horsies.workflows.statements import ListedWorkflow, OverviewNode, OverviewWorkflow

STYLES = {
    "PENDING": "dim",
    "READY": "blue",
    "ENQUEUED": "blue",
    "CLAIMED": "blue",
    "RUNNING": "yellow",
    "COMPLETED": "green",
    "FAILED": "red",
    "SKIPPED": "dim",
    "PAUSED": "magenta",
    "CANCELLED": "dim",
    "EXPIRED": "magenta",
}
_SYMBOLS = {
    "PENDING": "○",
    "READY": "◌",
    "ENQUEUED": "◌",
    "RUNNING": "●",
    "COMPLETED": "✔",
    "FAILED": "✘",
    "SKIPPED": "⊘",
}
_WORDS = {
    "FAILED": "failed",
    "RUNNING": "running",
    "ENQUEUED": "queued",
    "READY": "to start",
    "PENDING": "waiting",
    "SKIPPED": "skipped",
}
_ENDED = ("COMPLETED", "FAILED", "SKIPPED")
_NAMED_AT_MOST = 3


def symbol(status: str, kind: str = "task") -> Text:
    """One character for the state of a node."""
    is_waiting = status == "RUNNING" and kind in ("sleep", "event")
    return Text("◷" if is_waiting else _SYMBOLS.get(status, "?"), STYLES.get(status, ""))


def status_text(status: str) -> Text:
    return Text(status, STYLES.get(status, ""))


def ran_for(row: ListedWorkflow | OverviewWorkflow) -> timedelta | None:
    """How long a workflow took, or has taken up to now."""
    return None if row.started_at is None else (row.completed_at or row.read_at) - row.started_at


def progress(workflow: OverviewWorkflow) -> str:
    """How far a workflow is, and what is not well or under way in it."""
    done = sum(workflow.counts.get(status, 0) for status in _ENDED)
    return f"{done} of {sum(workflow.counts.values())} done{_counted(workflow.counts)}"


def group_text(members: Sequence[OverviewNode]) -> str:
    counts = Counter(node.status for node in members)
    done = sum(counts[status] for status in _ENDED)
    return f"{done} of {len(members)} done{_counted(counts)}"


def group_status(members: Sequence[OverviewNode]) -> str:
    """The state that says most about many nodes."""
    found = {node.status for node in members}
    order = ("FAILED", "RUNNING", "ENQUEUED", "READY", "PENDING", "COMPLETED", "SKIPPED")
    return next((status for status in order if status in found), members[0].status)


def node_text(
    node: OverviewNode, overview: WorkflowOverview, by_index: Mapping[int, OverviewNode]
) -> str:
    """What is to be said of a node besides its name."""
    now = overview.workflow.read_at
    child = overview.children.get(node.sub_workflow_id or "")
    if node.status in ("COMPLETED", "FAILED"):
        # The failures of a child say more than that it failed.
        code = node.error_code if child is None or not child.workflow.counts.get("FAILED") else None
        parts = [code or "", _child_text(child), _took(node, now)]
    elif node.status == "SKIPPED":
        parts = [_skip_reason(node, overview.workflow, by_index)]
    elif node.status == "PENDING":
        parts = [_waits_for(node, by_index)]
    elif node.status == "RUNNING":
        parts = [_running(node, now), _child_text(child)]
    else:
        parts = [_not_begun(node, overview.workflow)]
    return ", ".join(part for part in parts if part)


def _counted(counts: Mapping[str, int]) -> str:
    return "".join(f", {counts[s]} {word}" for s, word in _WORDS.items() if counts.get(s))


def _took(node: OverviewNode, now: datetime) -> str:
    return "" if node.started_at is None else duration((node.completed_at or now) - node.started_at)


def _child_text(child: WorkflowOverview | None) -> str:
    if child is None:
        return ""
    is_stopped = child.workflow.status in ("PAUSED", "CANCELLED")
    return progress(child.workflow) + (f", {child.workflow.status}" if is_stopped else "")


def _running(node: OverviewNode, now: datetime) -> str:
    until = "" if node.wait_until is None else moment(node.wait_until, now)
    if node.kind == "sleep":
        return f"sleeps until {until}"
    if node.kind == "event":
        limit = f", until {until}" if until else ""
        return f"waits for event {node.event_name}, key {node.event_key}{limit}"
    if node.started_at is None:
        return f"runs again soon, {node.retry_count} tries before"
    retries = f", retry {node.retry_count}" if node.retry_count else ""
    return f"running {_took(node, now)}{retries}"


def _not_begun(node: OverviewNode, workflow: OverviewWorkflow) -> str:
    if node.kind == "sub_workflow":
        return "waits for a worker that builds it"
    if workflow.status == "PAUSED":
        return "held while paused"
    is_bounded = node.status == "READY"
    return "waits for its turn" if is_bounded else f"queued in {node.queue_name}"


def _waits_for(node: OverviewNode, by_index: Mapping[int, OverviewNode]) -> str:
    dependencies = [by_index[index] for index in node.dependencies if index in by_index]
    names = [name_of(other) for other in dependencies if other.status not in _ENDED]
    if not names:
        return "decided when the workflow goes on"
    if node.join_type == "any":
        return f"waits for any of {_list(names)}"
    if node.join_type == "quorum":
        done = sum(other.status == "COMPLETED" for other in dependencies)
        return f"needs {node.min_success} of {len(dependencies)}, has {done}"
    return f"waits for {_list(names)}"


def _skip_reason(
    node: OverviewNode, workflow: OverviewWorkflow, by_index: Mapping[int, OverviewNode]
) -> str:
    bad = [by_index[index] for index in node.dependencies if index in by_index]
    failed = [name_of(other) for other in bad if other.status == "FAILED"]
    skipped = [name_of(other) for other in bad if other.status == "SKIPPED"]
    # Only a join of all is lost with one failure; other nodes had still been waiting.
    if workflow.status == "CANCELLED" and (not failed or node.join_type != "all"):
        return "skipped: the workflow was cancelled"
    if failed:
        return f"skipped: {_list(failed)} failed"
    return f"skipped: {_list(skipped)} skipped" if skipped else "skipped"


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED_AT_MOST])
    more = len(names) - _NAMED_AT_MOST
    return f"{shown} and {more} more" if more > 0 else shown
