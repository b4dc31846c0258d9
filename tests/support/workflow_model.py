"""A pure model of how workflows go: rows in, states out. The SQL functions are held against it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["PENDING", "ENQUEUED", "COMPLETED", "FAILED", "SKIPPED"]
TERMINAL = ("COMPLETED", "FAILED", "SKIPPED")


@dataclass(frozen=True)
class ModelNode:
    """One node: what it waits for, and how."""

    dependencies: tuple[int, ...] = ()
    join: str = "all"
    min_success: int | None = None
    allow_failed_deps: bool = False
    ctx_from: tuple[int, ...] = ()


@dataclass
class Model:
    """One workflow. Every change goes on until nothing follows."""

    nodes: Sequence[ModelNode]
    on_error: str = "fail"
    cases: Sequence[Sequence[int]] | None = None
    status: str = "RUNNING"
    states: list[Status] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states = ["PENDING" for _ in self.nodes]
        self._go_on()

    def end(self, index: int, *, ok: bool) -> None:
        """A node's task has ended."""
        if self.states[index] != "ENQUEUED":
            return
        self.states[index] = "COMPLETED" if ok else "FAILED"
        if not ok and self.on_error == "pause" and self.status == "RUNNING":
            self.status = "PAUSED"
        self._go_on()

    def pause(self) -> None:
        if self.status == "RUNNING":
            self.status = "PAUSED"

    def resume(self) -> None:
        if self.status == "PAUSED":
            self.status = "RUNNING"
            self._go_on()

    def cancel(self, running: Mapping[int, bool] | None = None) -> None:
        """What runs goes on; the rest is skipped."""
        if self.status in ("RUNNING", "PAUSED"):
            self.status = "CANCELLED"
            for index, state in enumerate(self.states):
                if state == "PENDING" or (state == "ENQUEUED" and index not in (running or {})):
                    self.states[index] = "SKIPPED"

    def _go_on(self) -> None:
        if self.status != "RUNNING":
            return
        is_changed = True
        while is_changed:
            is_changed = False
            for index, node in enumerate(self.nodes):
                verdict = self._verdict(node)
                if self.states[index] == "PENDING" and verdict != "wait":
                    self.states[index] = "ENQUEUED" if verdict == "run" else "SKIPPED"
                    is_changed = True
        if all(state in TERMINAL for state in self.states):
            self.status = "COMPLETED" if self._is_success() else "FAILED"

    def _verdict(self, node: ModelNode) -> str:
        states = [self.states[index] for index in node.dependencies]
        is_open = [state not in TERMINAL for state in states]
        completed = states.count("COMPLETED")
        if not states:
            return "run"
        if node.join == "all":
            if any(is_open):
                return "wait"
            return "run" if completed == len(states) or node.allow_failed_deps else "skip"
        needed = 1 if node.join == "any" else node.min_success or 0
        if completed >= needed:
            reads_open = any(self.states[index] not in TERMINAL for index in node.ctx_from)
            return "wait" if reads_open else "run"
        return "skip" if completed + sum(is_open) < needed else "wait"

    def _is_success(self) -> bool:
        if self.cases is None:
            return "FAILED" not in self.states
        return any(all(self.states[i] == "COMPLETED" for i in case) for case in self.cases)
