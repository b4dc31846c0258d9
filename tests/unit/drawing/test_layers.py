"""Graphs are drawn in layers: nothing overlaps, everything points to the right."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from horsies.drawing.layers import Edge, lay_out


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[Edge]]:
    size = draw(st.integers(1, 25))
    keys = list(range(size))
    edges = draw(st.lists(st.tuples(st.sampled_from(keys), st.sampled_from(keys)), max_size=60))
    return keys, [(a, b) for a, b in edges if a < b]


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_nodes_keep_their_distance_and_edges_point_right(
    graph: tuple[list[int], list[Edge]],
) -> None:
    keys, edges = graph

    layout = lay_out(keys, edges)

    assert set(layout.places) == set(keys)
    for source, target in edges:
        assert layout.places[source][0] < layout.places[target][0]
    points = [*layout.places.values(), *(p for bends in layout.bends.values() for p in bends)]
    for layer in range(layout.layer_count):
        rows = sorted(row for at, row in points if at == layer)
        assert all(below - above > 0.999 for above, below in pairwise(rows))
    assert all(0 <= row <= layout.row_count - 0.999 for _, row in points)


def test_a_diamond_is_symmetric() -> None:
    layout = lay_out("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])

    assert layout.places == {"a": (0, 0.5), "b": (1, 0.0), "c": (1, 1.0), "d": (2, 0.5)}


def test_an_edge_over_several_layers_bends_around_what_is_between() -> None:
    layout = lay_out("abc", [("a", "b"), ("b", "c"), ("a", "c")])

    (bend,) = layout.bends["a", "c"]
    assert bend[0] == layout.places["b"][0]
    assert abs(bend[1] - layout.places["b"][1]) >= 0.999


def test_a_ring_is_drawn_all_the_same() -> None:
    """Rows written by hand may hold one."""
    layout = lay_out("ab", [("a", "b"), ("b", "a")])

    assert set(layout.places) == {"a", "b"}
    assert layout.places["a"] != layout.places["b"]


def test_unknown_ends_are_left_out_and_nothing_is_nothing() -> None:
    assert lay_out("a", [("a", "x")]).bends == {}
    assert lay_out([], []).layer_count == 0


def test_long_chains_with_shortcuts_are_laid_out_quickly() -> None:
    keys = list(range(1_000))
    layout = lay_out(keys, [*pairwise(keys), *((0, key) for key in keys[2:])])

    assert layout.layer_count == 1_000
