"""The nodes of a workflow, and the rules that decide whether it succeeded.

Nodes are descriptions: a spec checks them and keeps frozen copies.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

from horsies.codec.text import is_storable
from horsies.codes import ErrorCode
from horsies.errors import WorkflowValidationError
from horsies.result import Result
from horsies.results.handle import TaskHandle
from horsies.workflows.freezing import Freezable

if TYPE_CHECKING:
    from horsies.workflows.definition import WorkflowDefinition
    from horsies.workflows.events import Event

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Join: TypeAlias = Literal["all", "any", "quorum"]

UNKNOWN_TYPE: Any = inspect.Parameter.empty  # the codec reads values of this type untyped


class OnError(StrEnum):
    """What a failed node does to its workflow."""

    FAIL = "fail"
    PAUSE = "pause"


class TaskLike(Protocol[T]):
    """The part of a task function that nodes need; `send` carries the type of its result."""

    @property
    def task_name(self) -> str: ...
    @property
    def task_ok_type(self) -> Any: ...
    def send(self, *args: Any, **kwargs: Any) -> Result[TaskHandle[T], Any]: ...


@dataclass(frozen=True)
class _KeyFields:
    node_id: str
    _ok_type: Any = field(default=UNKNOWN_TYPE, compare=False, repr=False)


# A subclass of a frozen dataclass, so that `NodeKey[int]("load")` can remember its parameter.
class NodeKey(_KeyFields, Generic[T_co]):
    """Names a node wherever results are looked up; made by `node.key()` or from any text."""

    @property
    def ok_type(self) -> Any:
        """The type of the node's ok value; unknown for a key made from a bare text."""
        arguments = get_args(vars(self).get("__orig_class__"))
        return arguments[0] if arguments and self._ok_type is UNKNOWN_TYPE else self._ok_type


class Node(Freezable, ABC, Generic[T_co]):
    """What all kinds of nodes share. `T_co` is the type of the ok value."""

    waits_for: Sequence["AnyNode"]
    join: Join
    min_success: int | None
    allow_failed_deps: bool
    index: int | None
    node_id: str | None

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "node_id":
            vars(self).pop("_has_generated_id", None)  # an id assigned by hand is kept

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} node_id={self.node_id!r}>"

    @property
    @abstractmethod
    def name(self) -> str:
        """What the node runs or waits for."""

    @property
    @abstractmethod
    def ok_type(self) -> Any:
        """The type of the ok value, or `UNKNOWN_TYPE`."""

    def key(self) -> NodeKey[T_co]:
        """The key under which the node's result is found; needs a `node_id`."""
        if self.node_id is None:
            raise WorkflowValidationError(
                f"node_id is not set on {self!r}",
                ErrorCode.WORKFLOW_INVALID_NODE_ID,
                help_text="give the node a node_id, or build the workflow first",
            )
        return NodeKey(self.node_id, self.ok_type)


@dataclass(eq=False, repr=False)
class TaskNode(Node[T]):
    """Runs a task. With `each`, runs it once per element of that node's list."""

    fn: TaskLike[T]
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    waits_for: Sequence["AnyNode"] = field(default_factory=list["AnyNode"])
    args_from: Mapping[str, "AnyNode"] = field(default_factory=dict[str, "AnyNode"])
    workflow_ctx_from: Sequence["AnyNode"] | None = None
    queue: str | None = None
    priority: int | None = None
    allow_failed_deps: bool = False
    join: Join = "all"
    min_success: int | None = None
    good_until: datetime | None = None
    index: int | None = None
    node_id: str | None = None
    each: "AnyNode | None" = None
    each_as: str | None = None
    max_in_flight: int = 100
    # Set in the copies of a spec: `kwargs` as they will be stored.
    kwargs_json: str | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        return self.fn.task_name

    @property
    def ok_type(self) -> Any:
        own = known_type(getattr(self.fn, "task_ok_type", None))
        return own if self.each is None else _list_of(own)


@dataclass(eq=False, repr=False)
class SubWorkflowNode(Node[T]):
    """Runs another workflow; its output is the node's result."""

    workflow_def: "type[WorkflowDefinition[T]]"
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    waits_for: Sequence["AnyNode"] = field(default_factory=list["AnyNode"])
    args_from: Mapping[str, "AnyNode"] = field(default_factory=dict[str, "AnyNode"])
    workflow_ctx_from: Sequence["AnyNode"] | None = None
    join: Join = "all"
    min_success: int | None = None
    allow_failed_deps: bool = False
    index: int | None = None
    node_id: str | None = None
    kwargs_json: str | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        return getattr(self.workflow_def, "name", None) or self.workflow_def.__name__

    @property
    def ok_type(self) -> Any:
        return self.workflow_def.get_ok_type()


@dataclass(eq=False, repr=False)
class SleepNode(Node[None]):
    """Waits for a time without holding a worker: `duration` from its start, or `until`."""

    duration: timedelta | None = None
    until: datetime | None = None
    waits_for: Sequence["AnyNode"] = field(default_factory=list["AnyNode"])
    join: Join = "all"
    min_success: int | None = None
    allow_failed_deps: bool = False
    index: int | None = None
    node_id: str | None = None

    @property
    def name(self) -> str:
        return "sleep"

    @property
    def ok_type(self) -> Any:
        return type(None)


@dataclass(eq=False, repr=False)
class EventNode(Node[T]):
    """Waits for `app.send_event(...)` with this name and key; the payload is its result."""

    event: "Event[T]"
    event_key: str
    timeout: timedelta | None = None
    waits_for: Sequence["AnyNode"] = field(default_factory=list["AnyNode"])
    join: Join = "all"
    min_success: int | None = None
    allow_failed_deps: bool = False
    index: int | None = None
    node_id: str | None = None

    @property
    def name(self) -> str:
        return self.event.name

    @property
    def ok_type(self) -> Any:
        return self.event.payload_type


AnyNode: TypeAlias = TaskNode[Any] | SubWorkflowNode[Any] | SleepNode | EventNode[Any]
NODE_CLASSES = (TaskNode, SubWorkflowNode, SleepNode, EventNode)


@dataclass(eq=False)
class SuccessCase(Freezable):
    """One way to succeed: all these nodes are COMPLETED."""

    required: Sequence[AnyNode]


@dataclass(eq=False)
class SuccessPolicy(Freezable):
    """The workflow succeeds if one case holds; `optional` nodes never matter."""

    cases: Sequence[SuccessCase]
    optional: Sequence[AnyNode] | None = None


def _list_of(element: Any) -> Any:
    made: Any = list
    return made[element]


def is_short_text(value: object) -> bool:
    """Whether a value can be the name or the key of an event."""
    return isinstance(value, str) and 1 <= len(value) <= 255 and is_storable(value)


def known_type(declared: object) -> Any:
    """Return a declared type; a missing one is unknown."""
    return UNKNOWN_TYPE if declared is None else declared
