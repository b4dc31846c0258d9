"""Draw a DAG as a mermaid flowchart, before it runs or with the states of its nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from horsies.workflows.nodes import AnyNode, EventNode, SleepNode, SubWorkflowNode, TaskNode

NodeKind: TypeAlias = Literal["task", "each", "sub_workflow", "sleep", "event"]

_SHAPES: dict[str, tuple[str, str]] = {
    "task": ("[", "]"),
    "each": ("[/", "/]"),
    "sub_workflow": ("[[", "]]"),
    "sleep": ("([", "])"),
    "event": ("{{", "}}"),
}
_COLOURS = {
    "PENDING": "fill:#eeeeee,stroke:#999999,color:#333333",
    "READY": "fill:#e3e8ff,stroke:#6677cc,color:#222222",
    "ENQUEUED": "fill:#d6e4ff,stroke:#4466cc,color:#222222",
    "RUNNING": "fill:#fff2cc,stroke:#cc9900,color:#222222",
    "COMPLETED": "fill:#d5f0d8,stroke:#339944,color:#222222",
    "FAILED": "fill:#f8d7da,stroke:#bb2233,color:#222222",
    "SKIPPED": "fill:#f5f5f5,stroke:#bbbbbb,color:#888888,stroke-dasharray:4 3",
}
_ESCAPES = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\n": " ", "\r": " "}


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """What a picture needs of a node."""

    node_id: str
    name: str
    kind: NodeKind
    dependencies: Sequence[str] = ()
    join: str = "all"
    min_success: int | None = None
    status: str | None = None


def draw_mermaid(nodes: Sequence[DrawnNode]) -> str:
    """Draw nodes top-down, each edge from a dependency to its dependent."""
    # Ids of nodes may hold characters and words that mermaid reads as syntax.
    handles = {node.node_id: f"n{index}" for index, node in enumerate(nodes)}
    lines = ["flowchart TD"]
    for node in nodes:
        left, right = _SHAPES.get(node.kind, _SHAPES["task"])  # one of a newer release
        lines.append(f'    {handles[node.node_id]}{left}"{_label(node)}"{right}')
    for node in nodes:
        arrow = _arrow(node)
        lines += [
            f"    {handles[dependency]} {arrow} {handles[node.node_id]}"
            for dependency in node.dependencies
            if dependency in handles
        ]
    return "\n".join([*lines, *_state_lines(nodes, handles)]) + "\n"


def drawn_nodes(nodes: Iterable[AnyNode]) -> list[DrawnNode]:
    """Return the nodes of a spec as they are drawn."""
    return [
        DrawnNode(
            node_id=str(node.node_id),
            name=node.name,
            kind=node_kind(node),
            dependencies=[str(dependency.node_id) for dependency in node.waits_for],
            join=node.join,
            min_success=node.min_success,
        )
        for node in nodes
    ]


def node_kind(node: AnyNode) -> NodeKind:
    """Return the kind of a node."""
    match node:
        case TaskNode():
            return "task" if node.each is None else "each"
        case SubWorkflowNode():
            return "sub_workflow"
        case SleepNode():
            return "sleep"
        case EventNode():
            return "event"


def _label(node: DrawnNode) -> str:
    parts = [node.node_id] if node.name == node.node_id else [node.node_id, node.name]
    if node.status is not None:
        parts.append(node.status)
    return "<br/>".join("".join(_ESCAPES.get(c, c) for c in part) for part in parts)


def _arrow(node: DrawnNode) -> str:
    if node.join == "all":
        return "-->"
    text = "any" if node.join == "any" else f"{node.min_success} of {len(node.dependencies)}"
    return f'-. "{text}" .->'


def _state_lines(nodes: Sequence[DrawnNode], handles: dict[str, str]) -> list[str]:
    by_status: dict[str, list[str]] = {}
    for node in nodes:
        if node.status in _COLOURS:
            by_status.setdefault(node.status, []).append(handles[node.node_id])
    return [
        line
        for status, members in by_status.items()
        for line in (
            f"    classDef {status} {_COLOURS[status]}",
            f"    class {','.join(members)} {status}",
        )
    ]
