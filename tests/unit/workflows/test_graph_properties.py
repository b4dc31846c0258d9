"""Any DAG is accepted, any cycle is found."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horsies import TaskNode
from horsies.errors import HorsiesError
from support.flows import codes, load, problems, spec_of

Edges = list[tuple[int, int]]


@st.composite
def dags(draw: st.DrawFn) -> tuple[int, Edges]:
    """A number of nodes, and edges from lower to higher ones."""
    count = draw(st.integers(2, 25))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = draw(st.lists(pairs.filter(lambda pair: pair[0] < pair[1]), max_size=60))
    return count, edges


def nodes_of(count: int, edges: Edges) -> list[TaskNode[Any]]:
    nodes: list[TaskNode[Any]] = [TaskNode(fn=load, node_id=f"n{i}") for i in range(count)]
    for before, after in edges:
        nodes[after].waits_for = [*nodes[after].waits_for, nodes[before]]
    return nodes


@given(dag=dags(), shuffle=st.randoms())
def test_any_dag_is_accepted_and_its_edges_are_kept(dag: tuple[int, Edges], shuffle: Any) -> None:
    count, edges = dag
    nodes = nodes_of(count, edges)
    shuffle.shuffle(nodes)

    spec = spec_of(*nodes)

    frozen = {(d.node_id, n.node_id) for n in spec.tasks for d in n.waits_for}
    assert frozen == {(f"n{before}", f"n{after}") for before, after in edges}
    assert all(d is spec.tasks[d.index or 0] for n in spec.tasks for d in n.waits_for)


@given(dag=dags(), ring=st.lists(st.integers(0, 24), min_size=1, max_size=8, unique=True))
def test_any_cycle_is_found_and_named(dag: tuple[int, Edges], ring: list[int]) -> None:
    count, edges = dag
    ring = sorted({number % count for number in ring})
    closed = [*zip(ring, [*ring[1:], ring[0]], strict=True)]
    nodes = nodes_of(count, [*edges, *closed])
    edge_set = {(f"n{before}", f"n{after}") for before, after in [*edges, *closed]}

    with pytest.raises(HorsiesError) as caught:
        spec_of(*nodes)

    assert set(codes(caught.value)) <= {"HRS-005", "HRS-007"}
    (found,) = [error for error in problems(caught.value) if error.code == "HRS-007"]
    named = found.notes[0].split(" -> ")
    assert named[0] == named[-1]
    assert all(pair in edge_set for pair in itertools.pairwise(named))
