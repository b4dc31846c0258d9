"""The graph of a workflow as SVG: boxes in layers from left to right, with the state of each node.

Pure, as the charts are: colours are classes of the style sheet, links are given by the caller.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from markupsafe import Markup

from horsies.drawing.layers import Layout, lay_out
from horsies.drawing.rails import NodeGroup, plain_rows
from horsies.drawing.workflow_text import group_status, group_text, node_text
from horsies.workflows.overview import WorkflowOverview, name_of
from horsies.workflows.statements import OverviewNode

_WIDTH, _HEIGHT = 208, 54
_BETWEEN, _BELOW, _MARGIN = 52, 16, 10
_NAME_LENGTH, _SAID_LENGTH = 25, 34
# Above that a browser pans slowly and nobody finds anything; the table shows the nodes.
BOXES_LIMIT = 1_500
_MARKS = {"sub_workflow": "▸ ", "each": "⋔ ", "sleep": "◷ ", "event": "✉ "}

Link = Callable[[NodeGroup], str | None]
Point = tuple[float, float]


def draw_graph(overview: WorkflowOverview, link: Link) -> Markup | None:
    """The graph, or None where it is too large to be of use. Many nodes that are alike are one."""
    groups = groups_of(overview)
    if not groups or len(groups) > BOXES_LIMIT:
        return None
    edges = [(before, at) for at, group in enumerate(groups) for before in group.dependencies]
    layout = lay_out(range(len(groups)), edges)
    width = 2 * _MARGIN + layout.layer_count * (_WIDTH + _BETWEEN) - _BETWEEN
    height = 2 * _MARGIN + layout.row_count * (_HEIGHT + _BELOW) - _BELOW
    by_index = {node.task_index: node for node in overview.nodes}
    parts = [_edge(layout, groups, edge) for edge in layout.bends]
    parts += [
        _box(group, _corner(layout.places[at]), _said(group, overview, by_index), link(group))
        for at, group in enumerate(groups)
    ]
    return Markup(
        '<svg class="graph" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.0f} {h:.0f}"'
        ' role="group" aria-label="{label}" data-own="width height">{parts}</svg>'
    ).format(
        w=width,
        h=height,
        label=f"Graph of workflow {overview.workflow.name}: {len(overview.nodes)} nodes",
        parts=Markup("").join(parts),
    )


def groups_of(overview: WorkflowOverview) -> list[NodeGroup]:
    """The boxes of the graph: single nodes, and those that are alike together."""
    return [row.group for row in plain_rows(overview.nodes)]


def title_of(group: NodeGroup) -> str:
    if len(group.members) == 1:
        return name_of(group.first)
    return f"{group.first.task_name} × {len(group.members):,}"


def status_of(group: NodeGroup) -> str:
    return group_status(group.members)


def _said(
    group: NodeGroup, overview: WorkflowOverview, by_index: Mapping[int, OverviewNode]
) -> str:
    if len(group.members) > 1:
        return group_text(group.members)
    return node_text(group.first, overview, by_index)


def _corner(place: tuple[int, float]) -> Point:
    layer, row = place
    return _MARGIN + layer * (_WIDTH + _BETWEEN), _MARGIN + row * (_HEIGHT + _BELOW)


def _box(group: NodeGroup, corner: Point, said: str, href: str | None) -> Markup:
    node, status, title = group.first, status_of(group), title_of(group)
    lines = [title, node.task_name, f"{status.lower()}: {said}" if said else status.lower()]
    inside = Markup(
        '<rect width="{}" height="{}" rx="7"/>{}<circle cx="14" cy="18" r="4"/>'
        '<text class="name" x="25" y="22">{}</text><text class="said" x="14" y="42">{}</text>'
    ).format(
        _WIDTH,
        _HEIGHT,
        Markup('<rect class="behind" x="4" y="-4" width="{}" height="{}" rx="7"/>').format(
            _WIDTH, _HEIGHT
        )
        if len(group.members) > 1
        else "",
        _MARKS.get(node.kind, "") + _cut(title, _NAME_LENGTH - len(_MARKS.get(node.kind, ""))),
        _cut(said or node.task_name, _SAID_LENGTH),
    )
    if href is not None:
        inside = Markup('<a href="{}" aria-label="{}">{}</a>').format(
            href, ", ".join(lines), inside
        )
    return Markup(
        '<g class="node node-{}" transform="translate({:.1f} {:.1f})" data-key="n{}"'
        ' data-tip="{}">{}</g>'
    ).format(status.lower(), *corner, node.task_index, "\n".join(dict.fromkeys(lines)), inside)


def _edge(layout: Layout, groups: Sequence[NodeGroup], edge: tuple[object, object]) -> Markup:
    """From the right side of a box, straight past the layers between, to the left side."""
    source, target = edge
    start, end = _corner(layout.places[source]), _corner(layout.places[target])
    middle = _HEIGHT / 2
    points: list[Point] = [(start[0] + _WIDTH, start[1] + middle)]
    for bend in layout.bends[edge]:
        x, y = _corner(bend)
        points += [(x, y + middle), (x + _WIDTH, y + middle)]
    points.append((end[0], end[1] + middle))
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for number, ((x1, y1), (x2, y2)) in enumerate(pairwise(points)):
        half = (x1 + x2) / 2
        is_straight = number % 2 == 1
        path += (
            f"H{x2:.1f}"
            if is_straight
            else f"C{half:.1f} {y1:.1f} {half:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
        )
    assert isinstance(source, int)
    status = status_of(groups[source]).lower()
    return Markup('<path class="edge edge-{}" d="{}" data-key="e{}-{}"/>').format(
        status, path, source, target
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
