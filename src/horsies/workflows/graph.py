"""The shape of a DAG: foreign dependencies, roots and cycles, without recursion."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from horsies.codes import ErrorCode
from horsies.errors import WorkflowValidationError
from horsies.workflows.nodes import AnyNode, SubWorkflowNode

if TYPE_CHECKING:
    from horsies.workflows.definition import WorkflowDefinition

_SHOWN_IN_NOTE = 100


def graph_problems(
    nodes: Sequence[AnyNode], ids: Sequence[str]
) -> Iterator[WorkflowValidationError]:
    """Yield what keeps the nodes from being a DAG with a root."""
    positions = {node: index for index, node in enumerate(nodes)}
    for node, node_id in zip(nodes, ids, strict=True):
        for other in node.waits_for:
            if not is_among(other, positions):
                yield WorkflowValidationError(
                    f"node {node_id!r} waits for {describe(other)}, which is not in workflow",
                    ErrorCode.WORKFLOW_INVALID_DEPENDENCY,
                    help_text="add the node to tasks, or remove it from waits_for",
                )
    if nodes and all(node.waits_for for node in nodes):
        yield WorkflowValidationError(
            "no root tasks found: every node waits for another one",
            ErrorCode.WORKFLOW_NO_ROOT_TASKS,
            help_text="at least one node must have an empty waits_for",
        )
    if cycle := _find_cycle(nodes, positions):
        yield _cycle_error([ids[index] for index in cycle], "nodes")
    definitions = [node.workflow_def for node in nodes if isinstance(node, SubWorkflowNode)]
    if ring := _find_ring(definitions):
        yield _cycle_error([definition.__qualname__ for definition in ring], "definitions")


def is_among(candidate: object, nodes: dict[AnyNode, int]) -> bool:
    """Whether an object, possibly no node at all, is one of the nodes."""
    try:
        return candidate in nodes
    except TypeError:  # unhashable, so no node
        return False


def describe(other: object) -> str:
    """Name something that stands where a node of this workflow should stand."""
    node_id = getattr(other, "node_id", None)
    name = getattr(other, "name", None) or type(other).__name__
    return f"node {node_id!r}" if node_id else f"{name!r}"


def _find_cycle(nodes: Sequence[AnyNode], positions: dict[AnyNode, int]) -> list[int]:
    """Return the positions along one cycle, each waiting for the one before it; [] if none."""
    waits_for = [
        [positions[other] for other in node.waits_for if is_among(other, positions)]
        for node in nodes
    ]
    dependents: list[list[int]] = [[] for _ in nodes]
    open_count = [len(dependencies) for dependencies in waits_for]
    for index, dependencies in enumerate(waits_for):
        for dependency in dependencies:
            dependents[dependency].append(index)
    ready = [index for index, count in enumerate(open_count) if count == 0]
    while ready:
        for dependent in dependents[ready.pop()]:
            open_count[dependent] -= 1
            if open_count[dependent] == 0:
                ready.append(dependent)
    # What is left waits for a cycle: going back along open dependencies leads into one.
    at = next((index for index, count in enumerate(open_count) if count), None)
    seen: dict[int, int] = {}
    path: list[int] = []
    while at is not None and at not in seen:
        seen[at] = len(path)
        path.append(at)
        at = next(dependency for dependency in waits_for[at] if open_count[dependency])
    return [] if at is None else path[seen[at] :][::-1]


def _find_ring(
    definitions: Sequence["type[WorkflowDefinition[Any]]"],
) -> list["type[WorkflowDefinition[Any]]"]:
    """Return definitions that contain each other by their class attributes; [] if there are none.

    Nodes made in `build_with` are not seen, so parameters may end a recursion.
    """
    finished: set[object] = set()
    path: list[type[WorkflowDefinition[Any]]] = []
    steps = [(definition, False) for definition in definitions]
    while steps:
        definition, is_done = steps.pop()
        if is_done:
            finished.add(path.pop())
        elif definition in path:
            return path[path.index(definition) :]
        elif definition not in finished:
            path.append(definition)
            steps.append((definition, True))
            steps += [(child, False) for child in _children(definition)]
    return []


def _children(definition: "type[WorkflowDefinition[Any]]") -> list["type[WorkflowDefinition[Any]]"]:
    nodes = getattr(definition, "get_workflow_nodes", list[Any])()
    return [node.workflow_def for node in nodes if isinstance(node, SubWorkflowNode)]


def _cycle_error(names: Sequence[str], kind: str) -> WorkflowValidationError:
    shown = [*names[:_SHOWN_IN_NOTE], "…"] if len(names) > _SHOWN_IN_NOTE else [*names]
    return WorkflowValidationError(
        f"cycle detected in workflow DAG ({len(names)} {kind})",
        ErrorCode.WORKFLOW_CYCLE_DETECTED,
        notes=[" -> ".join([*shown, names[0]])],
        help_text="remove one of these dependencies",
    )
