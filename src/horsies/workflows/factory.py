"""`task.node(...)(...)`: make nodes with the task's own signature, wired by `from_node`."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, cast

from horsies.codes import ErrorCode
from horsies.errors import WorkflowValidationError
from horsies.result import TaskError, TaskResult
from horsies.workflows.nodes import NODE_CLASSES, AnyNode, Join, Node, TaskLike, TaskNode

P = ParamSpec("P")
T = TypeVar("T")


class NodeOptions(TypedDict, total=False):
    """What `task.node` takes."""

    waits_for: Sequence[AnyNode] | None
    args_from: Mapping[str, AnyNode] | None
    workflow_ctx_from: Sequence[AnyNode] | None
    node_id: str | None
    queue: str | None
    priority: int | None
    allow_failed_deps: bool
    join: Join
    min_success: int | None
    good_until: datetime | None


_DEFAULTS: NodeOptions = {
    "waits_for": None,
    "args_from": None,
    "workflow_ctx_from": None,
    "node_id": None,
    "queue": None,
    "priority": None,
    "allow_failed_deps": False,
    "join": "all",
    "min_success": None,
    "good_until": None,
}


@dataclass(frozen=True, slots=True)
class NodeReference:
    """What `from_node` really returns: the place of a result that does not exist yet."""

    node: AnyNode


def from_node(node: Node[T]) -> TaskResult[T, TaskError]:
    """Hand the result of `node` to a parameter of another node, which then waits for it.

    `count = count_rows.node()(rows=from_node(load))`
    """
    if not isinstance(node, NODE_CLASSES):
        raise _misplaced(f"from_node() takes a node, not {type(node).__name__}")
    # To a type checker, it is the result that the parameter will receive.
    return cast("TaskResult[T, TaskError]", NodeReference(cast("AnyNode", node)))


@dataclass(frozen=True)  # no slots: `NodeFactory[...](...)` sets __orig_class__
class NodeFactory(Generic[P, T]):
    """Call it with the task's keyword arguments to get the node."""

    fn: TaskLike[T]
    _: KW_ONLY
    waits_for: Sequence[AnyNode] | None
    args_from: Mapping[str, AnyNode] | None
    workflow_ctx_from: Sequence[AnyNode] | None
    node_id: str | None
    queue: str | None
    priority: int | None
    allow_failed_deps: bool
    join: Join
    min_success: int | None
    good_until: datetime | None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> TaskNode[T]:
        """Make the node; a value `from_node(n)` is delivered when `n` has ended."""
        return self.make(args, kwargs)

    def make(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> TaskNode[Any]:
        """Make the node from arguments as they were given."""
        if args:
            raise WorkflowValidationError(
                f"task {self.fn.task_name!r}: nodes take keyword arguments only",
                ErrorCode.WORKFLOW_POSITIONAL_ARGS_NOT_SUPPORTED,
                notes=[f"got {len(args)} positional arguments"],
                help_text="name the parameters: task.node()(path='in.csv')",
            )
        wired = {name: v.node for name, v in kwargs.items() if isinstance(v, NodeReference)}
        explicit = self.args_from or {}
        if twice := sorted(wired.keys() & explicit.keys()):
            raise WorkflowValidationError(
                f"task {self.fn.task_name!r}: {', '.join(twice)} given twice",
                ErrorCode.WORKFLOW_KWARGS_ARGS_FROM_OVERLAP,
                notes=["from_node() and args_from both name it"],
                help_text="keep one of them",
            )
        return TaskNode(
            fn=self.fn,
            kwargs={name: v for name, v in kwargs.items() if name not in wired},
            waits_for=each_once([*(self.waits_for or ()), *wired.values()]),
            args_from={**explicit, **wired},
            workflow_ctx_from=self.workflow_ctx_from,
            queue=self.queue,
            priority=self.priority,
            allow_failed_deps=self.allow_failed_deps,
            join=self.join,
            min_success=self.min_success,
            good_until=self.good_until,
            node_id=self.node_id,
        )


@dataclass(frozen=True)  # no slots: `EachNodeFactory[...](...)` sets __orig_class__
class EachNodeFactory(Generic[T]):
    """A factory for a node that runs once per element; one parameter is left open for it."""

    factory: NodeFactory[Any, T]
    producer: AnyNode
    each_as: str | None
    max_in_flight: int

    def __call__(self, *args: Any, **kwargs: Any) -> TaskNode[list[T]]:
        """Make the node; the element goes to `each_as` or to the one parameter left open."""
        node: TaskNode[Any] = self.factory.make(args, kwargs)
        node.waits_for = each_once([*node.waits_for, self.producer])
        node.each = self.producer
        node.each_as = self.each_as
        node.max_in_flight = self.max_in_flight
        return node


def node_factory(
    fn: TaskLike[T],
    options: NodeOptions,
    *,
    each: object = None,
    each_as: str | None = None,
    max_in_flight: int = 100,
) -> NodeFactory[Any, T] | EachNodeFactory[T]:
    """Make the factory behind `task.node(...)`; unknown options raise TypeError."""
    factory: NodeFactory[Any, T] = NodeFactory(fn, **cast("Any", {**_DEFAULTS, **options}))
    if each is None:
        return factory
    if not isinstance(each, NodeReference):
        raise _misplaced(f"each takes from_node(producer), not {type(each).__name__}")
    return EachNodeFactory(factory, each.node, each_as, max_in_flight)


def each_once(nodes: Sequence[AnyNode]) -> list[AnyNode]:
    """Drop repeated nodes, keep the order."""
    return list(dict.fromkeys(nodes))


def _misplaced(message: str) -> WorkflowValidationError:
    return WorkflowValidationError(
        message,
        ErrorCode.WORKFLOW_INVALID_ARGS_FROM,
        help_text="make the node first: load = load_rows.node()(...), then use from_node(load)",
    )
