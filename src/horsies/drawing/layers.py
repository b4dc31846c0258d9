"""Where the nodes of a graph go when it is drawn in layers, from left to right. Pure.

Nodes stand in the layer behind their last dependency; within a layer they are ordered so that few
edges cross, and moved towards their neighbours. Edges over several layers bend around the nodes
between.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TypeAlias

Key: TypeAlias = Hashable
Edge: TypeAlias = tuple[Key, Key]

_SWEEPS = 6
# Of an edge over many layers only the ends are placed: a bend for each would cost n * n.
_BENDS_LIMIT = 4_000


@dataclass(frozen=True, slots=True)
class _Bend:
    """Where an edge passes a layer between its ends."""

    edge: Edge
    layer: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Each node's layer and row, and the points between the ends of each edge.

    Rows are fractions of a node's height with its gap, from 0 at the top.
    """

    places: Mapping[Key, tuple[int, float]]
    bends: Mapping[Edge, Sequence[tuple[int, float]]]
    layer_count: int
    row_count: float


def lay_out(keys: Sequence[Key], edges: Sequence[Edge]) -> Layout:
    """Place the nodes of an acyclic graph; edges that name unknown nodes are left out."""
    known = set(keys)
    edges = [edge for edge in dict.fromkeys(edges) if known.issuperset(edge)]
    layer_of = _layers(keys, edges)
    chains = _chains(edges, layer_of)
    layers: list[list[Key]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for key in keys:
        layers[layer_of[key]].append(key)
    for chain in chains.values():
        for bend in chain[1:-1]:
            assert isinstance(bend, _Bend)
            layers[bend.layer].append(bend)
    before, behind = _neighbours(chains.values())
    _order(layers, before, behind)
    rows = _rows(layers, before, behind)
    return Layout(
        {key: (layer_of[key], rows[key]) for key in keys},
        {
            edge: [(bend.layer, rows[bend]) for bend in chain if isinstance(bend, _Bend)]
            for edge, chain in chains.items()
        },
        len(layers),
        max(rows.values(), default=-1.0) + 1,
    )


def _layers(keys: Sequence[Key], edges: Sequence[Edge]) -> dict[Key, int]:
    """The length of the longest way to each node; nodes of a cycle stay in the first layer."""
    followers: dict[Key, list[Key]] = defaultdict(list)
    waits = dict.fromkeys(keys, 0)
    for source, target in edges:
        followers[source].append(target)
        waits[target] += 1
    layer_of = dict.fromkeys(keys, 0)
    ready = deque(key for key in keys if waits[key] == 0)
    while ready:
        key = ready.popleft()
        for follower in followers[key]:
            layer_of[follower] = max(layer_of[follower], layer_of[key] + 1)
            waits[follower] -= 1
            if waits[follower] == 0:
                ready.append(follower)
    return layer_of


def _chains(edges: Sequence[Edge], layer_of: Mapping[Key, int]) -> dict[Edge, list[Key]]:
    """Each edge as the nodes and bends it passes."""
    chains: dict[Edge, list[Key]] = {}
    count = 0
    for edge in sorted(edges, key=lambda one: layer_of[one[1]] - layer_of[one[0]]):
        between = range(layer_of[edge[0]] + 1, layer_of[edge[1]])
        count += len(between)
        bends = [_Bend(edge, layer) for layer in between] if count <= _BENDS_LIMIT else []
        chains[edge] = [edge[0], *bends, edge[1]]
    return chains


Neighbours: TypeAlias = Mapping[Key, Sequence[Key]]


def _neighbours(chains: Iterable[Sequence[Key]]) -> tuple[Neighbours, Neighbours]:
    """What stands directly before each node or bend, and what directly behind it."""
    before: dict[Key, list[Key]] = defaultdict(list)
    behind: dict[Key, list[Key]] = defaultdict(list)
    for chain in chains:
        for left, right in pairwise(chain):
            before[right].append(left)
            behind[left].append(right)
    return before, behind


def _order(layers: list[list[Key]], before: Neighbours, behind: Neighbours) -> None:
    """Sort each layer by the mean position of its neighbours, forwards and backwards in turn."""
    for sweep in range(_SWEEPS):
        is_forward = sweep % 2 == 0
        neighbours = before if is_forward else behind
        position = {key: at for layer in layers for at, key in enumerate(layer)}
        for layer in layers if is_forward else reversed(layers):
            wish = {
                key: fmean(position[one] for one in near)
                if (near := neighbours.get(key))
                else float(position[key])
                for key in layer
            }
            layer.sort(key=wish.__getitem__)
            position.update({key: at for at, key in enumerate(layer)})


def _rows(layers: list[list[Key]], before: Neighbours, behind: Neighbours) -> dict[Key, float]:
    """Move every node towards the mean row of its neighbours, as far as the order lets it."""
    tallest = max((len(layer) for layer in layers), default=0)
    rows = {
        key: at + (tallest - len(layer)) / 2 for layer in layers for at, key in enumerate(layer)
    }
    for sweep in range(_SWEEPS):
        neighbours = before if sweep % 2 == 0 else behind
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wishes = [
                fmean(rows[one] for one in near) if (near := neighbours.get(key)) else rows[key]
                for key in layer
            ]
            rows.update(zip(layer, _spread(wishes), strict=True))
    top = min(rows.values(), default=0.0)
    return {key: row - top for key, row in rows.items()}


def _spread(wishes: Sequence[float]) -> list[float]:
    """The rows nearest to the wishes that keep the order and a distance of one.

    Blocks of touching nodes are moved together: each to the mean of what its members wish.
    """
    blocks: list[tuple[float, int]] = []  # the first row of a block that suits it best, its size
    for wish in wishes:
        start, size = wish, 1
        while blocks and blocks[-1][0] + blocks[-1][1] > start:
            above, above_size = blocks.pop()
            start = (above * above_size + (start - above_size) * size) / (above_size + size)
            size += above_size
        blocks.append((start, size))
    return [start + at for start, size in blocks for at in range(size)]
