"""The graph of a workflow as lines of text: one row per node, one rail per open dependency. Pure.

Rows stand in an order in which every node comes after those it waits for.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TypeVar

from horsies.workflows.statements import OverviewNode

T = TypeVar("T")

# So many nodes that differ in nothing but their arguments become one row.
COLLAPSE_FROM = 6


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A node, or many that are alike; `dependencies` are positions in the list of groups."""

    members: tuple[OverviewNode, ...]
    dependencies: tuple[int, ...]

    @property
    def first(self) -> OverviewNode:
        return self.members[0]


@dataclass(frozen=True, slots=True)
class GraphRow:
    """A group with the rails to the left of its symbol, to its right, and below it."""

    group: NodeGroup
    left: str = ""
    right: str = ""
    below: str = ""
    is_apart: bool = False


def graph_rows(nodes: Sequence[OverviewNode], max_rails: int) -> list[GraphRow] | None:
    """Draw nodes top-down; None when more rails would stand side by side than there is room for."""
    groups = _in_order(_collapse(nodes))
    rails = _Rails(groups)
    rows: list[GraphRow] = []
    for position, group in enumerate(groups):
        rows.append(rails.draw(position, group))
        if rails.width > max_rails:
            return None
    return rows


def plain_rows(nodes: Sequence[OverviewNode]) -> list[GraphRow]:
    """The same rows without rails."""
    return [GraphRow(group) for group in _in_order(_collapse(nodes))]


def _collapse(nodes: Sequence[OverviewNode]) -> list[NodeGroup]:
    """Put like nodes together: same task, same dependencies, same dependents."""
    dependents: defaultdict[int, list[int]] = defaultdict(list)
    for node in nodes:
        for index in node.dependencies:
            dependents[index].append(node.task_index)
    likes = _grouped(
        nodes,
        lambda node: (
            node.task_name,
            node.kind,
            tuple(sorted(node.dependencies)),
            tuple(dependents[node.task_index]),
        ),
    )
    parts = [
        part
        for like in likes
        for part in ([like] if len(like) >= COLLAPSE_FROM else [[node] for node in like])
    ]
    group_of = {node.task_index: number for number, part in enumerate(parts) for node in part}
    return [
        NodeGroup(
            tuple(part),
            tuple(sorted({group_of[i] for i in part[0].dependencies if i in group_of})),
        )
        for part in parts
    ]


def _grouped(items: Sequence[T], key: Callable[[T], object]) -> list[list[T]]:
    found: dict[object, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return list(found.values())


def _in_order(groups: Sequence[NodeGroup]) -> list[NodeGroup]:
    """Dependencies first; what a row makes possible follows it, so that rails stay short."""
    dependents: defaultdict[int, list[int]] = defaultdict(list)
    waiting: dict[int, int] = {}
    for number, group in enumerate(groups):
        waiting[number] = len(group.dependencies)
        for dependency in group.dependencies:
            dependents[dependency].append(number)
    # The latest to become possible goes first; among those, the one that was defined first.
    ready = [(0, groups[n].first.task_index, n) for n, count in waiting.items() if count == 0]
    heapify(ready)
    position: dict[int, int] = {}
    while ready:
        _, _, number = heappop(ready)
        position[number] = len(position)
        for dependent in dependents[number]:
            waiting[dependent] -= 1
            if waiting[dependent] == 0:
                entry = (-len(position), groups[dependent].first.task_index, dependent)
                heappush(ready, entry)
    return [
        NodeGroup(
            groups[number].members, tuple(sorted(position[d] for d in groups[number].dependencies))
        )
        for number in position
    ]


class _Rails:
    """The columns of a drawing: each holds the group whose dependents are still to come."""

    def __init__(self, groups: Sequence[NodeGroup]) -> None:
        self._to_come: defaultdict[int, int] = defaultdict(int)
        for group in groups:
            for dependency in group.dependencies:
                self._to_come[dependency] += 1
        self._columns: list[int | None] = []
        self._last_column: int | None = None
        self.width = 0

    def draw(self, position: int, group: NodeGroup) -> GraphRow:
        joined = {self._columns.index(dependency): dependency for dependency in group.dependencies}
        for dependency in joined.values():
            self._to_come[dependency] -= 1
        ended = [column for column, d in joined.items() if self._to_come[d] == 0]
        own = min(ended) if ended else self._free_column(min(joined, default=-1))
        self.width = max(self.width, len(self._columns))
        cells = list(self._cells(own, joined, set(ended)))
        is_apart = not joined and own == self._last_column
        for column in ended:
            self._columns[column] = None
        self._columns[own] = position if self._to_come[position] else None
        self._last_column = own if self._columns[own] is None else None
        while self._columns and self._columns[-1] is None:
            self._columns.pop()
        return GraphRow(
            group,
            left="".join(cells[:own]),
            right="".join(cells[own:])[1:],
            below="".join("  " if column is None else "│ " for column in self._columns),
            is_apart=is_apart,
        )

    def _free_column(self, right_of: int) -> int:
        for column in range(right_of + 1, len(self._columns)):
            if self._columns[column] is None:
                return column
        self._columns.append(None)
        return len(self._columns) - 1

    def _cells(self, own: int, joined: Mapping[int, int], ended: set[int]) -> Iterator[str]:
        """One cell of two characters for each column."""
        first, last = min([own, *joined]), max([own, *joined])
        for column, holder in enumerate(self._columns):
            line = "─" if first <= column < last else " "
            if column == own:
                yield f"*{line}"
            elif column in joined:
                corners = "╰┴╯" if column in ended else "├┼┤"
                yield corners[1 - (column == first) + (column == last)] + line
            elif holder is not None:
                yield f"│{line}"
            else:
                yield ("─" if first < column < last else " ") + line
