"""The graph of a workflow as lines of coloured text, with what is to be said of each node."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.text import Text

from horsies.drawing.rails import GraphRow, NodeGroup, graph_rows, plain_rows
from horsies.drawing.workflow_text import group_status, group_text, node_text, symbol
from horsies.workflows.overview import WorkflowOverview, name_of

_ROWS_SHOWN = 200
_ROWS_AT_ENDS = 20
_MAX_NAME = 40


def graph_lines(overview: WorkflowOverview, width: int, *, is_whole: bool = True) -> Iterator[Text]:
    """The graph of a workflow; children that were read stand below their nodes."""
    rows = graph_rows(overview.nodes, max_rails=max(4, (width - 50) // 2))
    has_rails = rows is not None
    rows = plain_rows(overview.nodes) if rows is None else rows
    by_index = {node.task_index: node for node in overview.nodes}
    rails_width = max((len(row.left + row.right) for row in rows), default=0)
    name_width = min(_MAX_NAME, max((len(_name(row.group)) for row in rows), default=0))
    below = ""
    for kept in rows if is_whole else _without_the_middle(rows):
        if isinstance(kept, list):
            yield Text(f"⋮ {len(kept)} rows: {_states(kept)}; --all shows them", "dim")
            continue
        row, node = kept, kept.group.first
        # Elements of a fan-out follow one another without being taken for a chain.
        if row.is_apart and overview.workflow.max_in_flight is None:
            yield Text(below, "dim")
        below = row.below
        is_one = len(row.group.members) == 1
        status = node.status if is_one else group_status(row.group.members)
        said = node_text(node, overview, by_index) if is_one else group_text(row.group.members)
        if not has_rails and row.group.dependencies and status != "PENDING":
            said += f"  after {_first_names(row, rows)}"
        line = Text.assemble((row.left, "dim"), symbol(status, node.kind), (row.right, "dim"))
        line.append(" " * (rails_width - len(row.left + row.right) + 1))
        line.append(_name(row.group).ljust(name_width) + "  ", "bold")
        if _task(row.group) != _name(row.group):
            line.append(_task(row.group) + "  ", "dim")
        yield line.append(said, "red" if status == "FAILED" else "")
        child = overview.children.get(node.sub_workflow_id or "") if is_one else None
        if child is not None and child.nodes:
            inner = width - len(row.below) - 4
            for line_below in graph_lines(child, inner, is_whole=is_whole):
                yield Text.assemble((f"{row.below}  ┊ ", "dim"), line_below)


def _name(group: NodeGroup) -> str:
    if len(group.members) == 1:
        return name_of(group.first)
    return f"{name_of(group.first)} … {name_of(group.members[-1])}"


def _task(group: NodeGroup) -> str:
    node = group.first
    if len(group.members) > 1:
        return f"{node.task_name} × {len(group.members)}"
    names = {"sleep": "sleep", "event": "event", "each": f"{node.task_name}, for each"}
    return names.get(node.kind, node.task_name)


def _first_names(row: GraphRow, rows: Sequence[GraphRow]) -> str:
    names = [_name(rows[position].group) for position in row.group.dependencies[:3]]
    more = len(row.group.dependencies) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _without_the_middle(rows: Sequence[GraphRow]) -> Iterator[GraphRow | list[GraphRow]]:
    """Leave out what is over or still waits, where there are too many rows to look at."""
    left_out: list[GraphRow] = []
    for position, row in enumerate(rows):
        is_dull = group_status(row.group.members) in ("COMPLETED", "PENDING", "SKIPPED")
        is_inside = _ROWS_AT_ENDS <= position < len(rows) - _ROWS_AT_ENDS
        if len(rows) > _ROWS_SHOWN and is_dull and is_inside:
            left_out.append(row)
            continue
        if left_out:
            yield left_out
            left_out = []
        yield row


def _states(rows: Sequence[GraphRow]) -> str:
    counts = Counter(node.status for row in rows for node in row.group.members)
    return ", ".join(f"{count} {status}" for status, count in counts.items())
