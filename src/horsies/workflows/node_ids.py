"""Ids of nodes: given, or made from the workflow's name and the position."""

import re
from collections.abc import Iterator, Sequence

from horsies.codes import ErrorCode
from horsies.errors import WorkflowValidationError
from horsies.workflows.nodes import AnyNode

NODE_ID_PATTERN = re.compile(r"[A-Za-z0-9_\-:.]{1,128}\Z")
_OUTSIDE = re.compile(r"[^A-Za-z0-9_\-:.]")


def slugify(text: str) -> str:
    """Turn a text into the start of a node id.

    >>> slugify("nightly import!")
    'nightly_import'
    """
    return _OUTSIDE.sub("", text.replace(" ", "_")) or "_"


def has_given_id(node: AnyNode) -> bool:
    """Whether the user chose the id; one made by an earlier spec does not count."""
    return node.node_id is not None and "_has_generated_id" not in vars(node)


def assigned_ids(workflow_name: str, nodes: Sequence[AnyNode]) -> list[str]:
    """Return the id of each node in the workflow, valid or not."""
    slug = slugify(workflow_name)
    return [
        node.node_id if has_given_id(node) and node.node_id is not None else f"{slug}:{index}"
        for index, node in enumerate(nodes)
    ]


def id_problems(nodes: Sequence[AnyNode], ids: Sequence[str]) -> Iterator[WorkflowValidationError]:
    """Yield what is wrong with the ids of a workflow's nodes."""
    first: dict[str, AnyNode] = {}
    for node, node_id in zip(nodes, ids, strict=True):
        if not _is_valid(node_id):
            yield _invalid(node, node_id)
        elif node_id in first:
            yield WorkflowValidationError(
                f"duplicate node_id {node_id!r}",
                ErrorCode.WORKFLOW_DUPLICATE_NODE_ID,
                notes=[f"used by {first[node_id].name!r} and {node.name!r}"],
                help_text="give each node of a workflow its own node_id",
            )
        else:
            first[node_id] = node


def _is_valid(node_id: object) -> bool:
    return isinstance(node_id, str) and NODE_ID_PATTERN.match(node_id) is not None


def _invalid(node: AnyNode, node_id: object) -> WorkflowValidationError:
    is_text = isinstance(node_id, str)
    is_long = is_text and len(str(node_id)) > 128
    reason = "is longer than 128 characters or " if is_long else ""
    shown = repr(node_id) if len(repr(node_id)) < 150 else f"{node_id!r:.140}…"
    cure = (
        "use 1 to 128 characters of A-Z, a-z, 0-9, '_', '-', ':' and '.'"
        if has_given_id(node)
        else "shorten the workflow's name, or give the nodes a node_id"
    )
    return WorkflowValidationError(
        f"node_id {reason}contains invalid characters: {shown}",
        ErrorCode.WORKFLOW_INVALID_NODE_ID,
        notes=[f"node {node.name!r}"],
        help_text=cure,
    )
