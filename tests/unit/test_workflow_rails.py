"""The graph of a workflow as text: rails, order and collapsed nodes."""

import pytest

from horsies.drawing.rails import COLLAPSE_FROM, graph_rows, plain_rows
from horsies.workflows.statements import OverviewNode


def nodes(edges: dict[str, str]) -> list[OverviewNode]:
    """Nodes by their one-letter names, each with the letters it waits for; one task for each."""
    index = {name: number for number, name in enumerate(edges)}
    return [
        node(index[name], [index[other] for other in waits_for], name, f"task_{name}")
        for name, waits_for in edges.items()
    ]


def node(index: int, dependencies: list[int], name: str, task: str) -> OverviewNode:
    return OverviewNode(
        "w", index, name, task, "task", "PENDING", None, None, dependencies, "all", None,
        "default", None, None, None, None, 0, None, None,
    )  # fmt: skip


def drawn(edges: dict[str, str]) -> list[str]:
    rows = graph_rows(nodes(edges), max_rails=20)
    assert rows is not None
    return [f"{row.left}{row.group.first.node_id}{row.right}".rstrip() for row in rows]


@pytest.mark.parametrize(
    ("edges", "picture"),
    [
        ({"a": "", "b": "a", "c": "b"}, ["a", "b", "c"]),
        ({"a": "", "b": "a", "c": "a", "d": "bc"}, ["a", "├─b", "c │", "d─╯"]),
        ({"a": "", "b": "", "c": "ab", "d": "ab"}, ["a", "│ b", "├─┼─c", "d─╯"]),
        ({"d": "bc", "b": "a", "c": "a", "a": ""}, ["a", "├─b", "c │", "d─╯"]),
        ({"a": "", "b": "a", "c": "a", "d": "a"}, ["a", "├─b", "├─c", "d"]),
    ],
    ids=["chain", "diamond", "two by two", "defined backwards", "leaves"],
)
def test_every_edge_has_a_rail(edges: dict[str, str], picture: list[str]) -> None:
    assert drawn(edges) == picture


def test_roots_below_each_other_stand_apart() -> None:
    rows = graph_rows(nodes({"a": "", "b": ""}), max_rails=20)

    assert rows is not None
    assert [row.is_apart for row in rows] == [False, True]


@pytest.mark.parametrize(
    ("count", "expected"), [(COLLAPSE_FROM - 1, COLLAPSE_FROM + 1), (10_000, 3)]
)
def test_many_like_nodes_are_one_row(count: int, expected: int) -> None:
    middle = [node(i, [0], f"item_{i}", "work") for i in range(1, count + 1)]
    last = node(count + 1, list(range(1, count + 1)), "last", "collect")

    rows = plain_rows([node(0, [], "first", "load"), *middle, last])

    assert len(rows) == expected
    assert sum(len(row.group.members) for row in rows) == count + 2


def test_too_many_rails_are_refused() -> None:
    edges = {chr(97 + number): "" for number in range(9)} | {"z": "abcdefghi"}

    assert graph_rows(nodes(edges), max_rails=8) is None
    assert graph_rows(nodes(edges), max_rails=9) is not None
