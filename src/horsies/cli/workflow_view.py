"""The screens of `horsies workflow`: the list, and one workflow with its graph."""

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from horsies.cli.console import is_unicode
from horsies.drawing.graph import graph_lines
from horsies.drawing.workflow_text import progress, ran_for, status_text
from horsies.operations.words import duration, moment
from horsies.workflows.listing import WorkflowPage
from horsies.workflows.overview import WorkflowOverview, name_of
from horsies.workflows.statements import FailureRow, ListedWorkflow, OverviewWorkflow

_WIDE = 110
_SHORTEST_ID = 13  # the part of our ids that is the time, to the millisecond
_ERRORS_SHOWN = 10
_ASCII = str.maketrans("─│├┤┼┴╰╯┊✔✘●○◌⊘◷⋮·…", "-|++++`'|vx*o.-w:-.")


def print_list(console: Console, page: WorkflowPage) -> None:
    """One line per workflow."""
    if not page.workflows:
        console.print("no workflows match")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("id", no_wrap=True)
    table.add_column("name", overflow="ellipsis", no_wrap=True, ratio=1)
    table.add_column("status", no_wrap=True)
    table.add_column("done", no_wrap=True, justify="right")
    table.add_column("started", no_wrap=True)
    table.add_column("took", no_wrap=True, justify="right")
    ids = [row.id for row in page.workflows]
    for row, shown_id in zip(page.workflows, shown_ids(ids, console.width), strict=True):
        table.add_row(
            shown_id,
            row.name,
            status_text(row.status),
            f"{row.done_count}/{row.node_count}",
            _started(row),
            duration(ran_for(row)),
        )
    console.print(table)
    if page.next_before is not None:
        console.print(f"more: --before {page.next_before}", style="dim", soft_wrap=True)


def print_workflow(
    console: Console,
    overview: WorkflowOverview,
    failures: Sequence[FailureRow],
    locator: str,
    *,
    is_whole: bool,
) -> None:
    """The state of a workflow, its graph, what failed and what can be done."""
    workflow = overview.workflow
    console.print(
        Text.assemble((workflow.name, "bold"), f"  {workflow.id}  ", status_text(workflow.status)),
        soft_wrap=True,
    )
    console.print(f"{progress(workflow)}{_times(workflow)}", style="dim")
    if workflow.parent_workflow_id is not None:
        console.print(f"part of {workflow.parent_workflow_id}", style="dim", soft_wrap=True)
    console.print()
    for line in graph_lines(overview, console.width, is_whole=is_whole):
        _print_line(console, line)
    _print_errors(console, workflow, failures)
    _print_next_steps(console, overview, locator)


def _print_line(console: Console, line: Text) -> None:
    if not is_unicode(console):
        line = Text(line.plain.translate(_ASCII))
    console.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def shown_ids(ids: Sequence[str], width: int) -> list[str]:
    """Whole ids where there is room, else as much as tells them apart on this page."""
    if width >= _WIDE:
        return list(ids)
    longest = max(len(one) for one in ids)
    for length in range(_SHORTEST_ID, longest):
        short = [one[:length] for one in ids]
        if len(set(short)) == len(ids):
            return short
    return list(ids)


def _started(row: ListedWorkflow) -> str:
    return "" if row.started_at is None else moment(row.started_at, row.read_at)


def _times(workflow: OverviewWorkflow) -> str:
    if workflow.started_at is None:
        return ""
    started = moment(workflow.started_at, workflow.read_at)
    return f" · started {started} · {duration(ran_for(workflow))}"


def _print_errors(
    console: Console, workflow: OverviewWorkflow, failures: Sequence[FailureRow]
) -> None:
    lines = [
        Text.assemble(
            (_place(failure, workflow), "bold"),
            "  ",
            (failure.error_code or "FAILED", "red"),
            f": {failure.error_message or ''}",
        )
        for failure in failures[:_ERRORS_SHOWN]
    ]
    codes = {failure.error_code for failure in failures}
    if workflow.error_code is not None and workflow.error_code not in codes:
        message = f": {workflow.error_message or ''}"
        if workflow.error_code != "SUBWORKFLOW_FAILED" or not failures:
            lines.append(Text.assemble("workflow  ", (workflow.error_code, "red"), message))
    if not lines:
        return
    console.print("\nErrors", style="bold")
    for line in lines:
        console.print(Padding(line, (0, 0, 0, 2), expand=False))
    if len(failures) > _ERRORS_SHOWN:
        console.print("  and more; --json has all nodes", style="dim")


def _place(failure: FailureRow, workflow: OverviewWorkflow) -> str:
    where = "" if failure.workflow_id == workflow.id else f" in {failure.workflow_id}"
    return f"{name_of(failure)}{where}"


def _print_next_steps(console: Console, overview: WorkflowOverview, locator: str) -> None:
    workflow = overview.workflow
    steps = _next_steps(workflow, locator)
    for node in overview.nodes:
        if node.status == "RUNNING" and node.kind == "event" and len(steps) < 5:
            steps[f'app.send_event("{node.event_name}", "{node.event_key}", ...)'] = (
                f"ends the wait of {name_of(node)}"
            )
    if not steps:
        return
    console.print("\nWhat you can do", style="bold")
    for step, meaning in steps.items():
        is_short = len(step) + len(meaning) + 4 <= console.width
        gap = "  " if is_short else "\n      "
        console.print(Text.assemble(f"  {step}{gap}", (meaning, "dim")), soft_wrap=True)


def _next_steps(workflow: OverviewWorkflow, locator: str) -> dict[str, str]:
    if workflow.parent_workflow_id is not None:
        root = workflow.root_workflow_id or workflow.parent_workflow_id
        return {f"horsies workflow show {locator} {root}": "the workflow it is a part of"}
    command = f"horsies workflow {{}} {locator} {workflow.id}"
    has_failed = workflow.counts.get("FAILED", 0) > 0
    match workflow.status:
        case "PENDING" | "RUNNING":
            return {
                command.format("pause"): "running tasks finish, nothing starts",
                command.format("cancel"): "nothing starts any more, for good",
            }
        case "PAUSED":
            after = "go on; what waits for failed nodes is skipped" if has_failed else "go on"
            return {
                command.format("resume"): after,
                command.format("cancel"): "nothing starts any more, for good",
            }
        case "FAILED":
            return {
                command.format("retry"): "failed nodes run again, results are kept",
                command.format("retry") + " --from NODE": "a node and all behind it run again",
            }
        case "COMPLETED":
            return {command.format("retry") + " --from NODE": "a node and all behind it run again"}
        case _:
            return {}
