"""WorkflowSpec: a checked DAG with frozen copies of its nodes."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, cast

from horsies.codes import ErrorCode, WorkflowStartErrorCode
from horsies.errors import HorsiesError, WorkflowValidationError
from horsies.ids import new_id
from horsies.result import Err
from horsies.tasks.queues import ResolvedQueue
from horsies.workflows.calls import CheckedCall
from horsies.workflows.errors import WorkflowStartError, WorkflowStartResult
from horsies.workflows.factory import each_once
from horsies.workflows.freezing import (
    Freezable,
    freeze,
    frozen_mapping,
    is_frozen,
    thawed_copy,
)
from horsies.workflows.mermaid import draw_mermaid, drawn_nodes
from horsies.workflows.node_ids import assigned_ids, has_given_id, id_problems
from horsies.workflows.nodes import (
    NODE_CLASSES,
    AnyNode,
    Node,
    OnError,
    SubWorkflowNode,
    SuccessCase,
    SuccessPolicy,
    TaskNode,
)
from horsies.workflows.validate import Draft, check_draft, is_text, raise_problems

if TYPE_CHECKING:
    from horsies.workflows.definition import WorkflowDefinition
    from horsies.workflows.handle import WorkflowHandle

T = TypeVar("T")

# Numbers specs in the order of their creation: build_with must return a new one.
_serial_numbers = itertools.count()


class SpecBroker(Protocol):
    """The part of a broker that a spec itself needs."""

    def start_workflow(
        self, spec: "WorkflowSpec[T]", workflow_id: str | None = None, *, connection: Any = None
    ) -> "WorkflowStartResult[WorkflowHandle[T]]": ...
    async def start_workflow_async(
        self, spec: "WorkflowSpec[T]", workflow_id: str | None = None, *, connection: Any = None
    ) -> "WorkflowStartResult[WorkflowHandle[T]]": ...


@dataclass(frozen=True, slots=True)
class AppRules:
    """What an app adds to the construction of a spec."""

    resolve: Callable[[TaskNode[Any]], ResolvedQueue]
    # A definition's own nodes are used by each build and stay as they are.
    keeps_originals: bool = False


@dataclass(eq=False, repr=False)
class WorkflowSpec(Freezable, Generic[T]):
    """A workflow that can be started. Construction checks it and freezes copies of its nodes."""

    name: str
    tasks: Sequence[AnyNode]
    on_error: OnError | Literal["fail", "pause"] = OnError.FAIL
    output: Node[T] | None = None
    success_policy: SuccessPolicy | None = None
    definition_key: str | None = None
    workflow_def_cls: "type[WorkflowDefinition[Any]] | None" = None
    broker: SpecBroker | None = None
    resend_on_transient_err: bool = False
    app_rules: InitVar[AppRules | None] = None

    def __post_init__(self, app_rules: AppRules | None) -> None:
        nodes = tuple(self.tasks)
        raise_problems(_stranger_problems(nodes))
        ids = assigned_ids(str(self.name), nodes)
        raise_problems(id_problems(nodes, ids))
        problems, calls = check_draft(
            Draft(self.name, nodes, ids, self.output, self.success_policy, self.workflow_def_cls)
        )
        queues = _resolve_queues(nodes, app_rules, problems)
        if app_rules is not None and not is_text(self.definition_key):
            problems.append(no_definition_key(f"workflow {self.name!r}"))
        if self.on_error not in tuple(OnError):
            problems.append(_unknown_policy(self.on_error))
        raise_problems(problems)
        self._freeze(nodes, ids, calls, queues)
        if app_rules is None or not app_rules.keeps_originals:
            _write_back(nodes, ids)

    def __repr__(self) -> str:
        return f"<WorkflowSpec {self.name!r} of {len(self.tasks)} nodes>"

    def start(
        self, workflow_id: str | None = None, *, connection: Any = None
    ) -> "WorkflowStartResult[WorkflowHandle[T]]":
        """Store the workflow and start its roots, in one transaction.

        With `connection`, your own transaction decides whether the workflow exists. Starting an id
        again gives a handle on the workflow that has it.
        """
        if self.broker is None:
            return Err(self._no_broker(workflow_id))
        return self.broker.start_workflow(self, workflow_id, connection=connection)

    async def start_async(
        self, workflow_id: str | None = None, *, connection: Any = None
    ) -> "WorkflowStartResult[WorkflowHandle[T]]":
        """The awaitable twin of `start`."""
        if self.broker is None:
            return Err(self._no_broker(workflow_id))
        return await self.broker.start_workflow_async(self, workflow_id, connection=connection)

    def retry_start(self, error: WorkflowStartError) -> "WorkflowStartResult[WorkflowHandle[T]]":
        """Start again after `ENQUEUE_FAILED`, under the id of the failed start."""
        refusal = self._wrong_retry(error)
        return self.start(error.workflow_id) if refusal is None else Err(refusal)

    async def retry_start_async(
        self, error: WorkflowStartError
    ) -> "WorkflowStartResult[WorkflowHandle[T]]":
        """The awaitable twin of `retry_start`."""
        refusal = self._wrong_retry(error)
        return await self.start_async(error.workflow_id) if refusal is None else Err(refusal)

    def _no_broker(self, workflow_id: str | None) -> WorkflowStartError:
        return WorkflowStartError(
            WorkflowStartErrorCode.BROKER_NOT_CONFIGURED,
            f"workflow {self.name!r} has no broker: build it with app.workflow(...)",
            retryable=False,
            workflow_name=self.name,
            workflow_id=workflow_id or new_id(),
        )

    def _wrong_retry(self, error: WorkflowStartError) -> WorkflowStartError | None:
        is_failed = error.code is WorkflowStartErrorCode.ENQUEUE_FAILED
        if is_failed and error.workflow_name == self.name:
            return None
        message = (
            f"retry_start needs the ENQUEUE_FAILED error of workflow {self.name!r}, "
            f"got {error.code} of {error.workflow_name!r}"
        )
        code = WorkflowStartErrorCode.VALIDATION_FAILED
        return WorkflowStartError(
            code, message, False, self.name, error.workflow_id, error.exception
        )

    def to_mermaid(self) -> str:
        """Draw the DAG as a mermaid flowchart, for a README or a page that renders it."""
        return draw_mermaid(drawn_nodes(self.tasks))

    def _freeze(
        self,
        nodes: Sequence[AnyNode],
        ids: Sequence[str],
        calls: Sequence[CheckedCall | None],
        queues: Sequence[ResolvedQueue | None],
    ) -> None:
        copies: dict[AnyNode, AnyNode] = {node: thawed_copy(node) for node in nodes}
        for index, node in enumerate(nodes):
            _freeze_node(copies[node], copies, calls[index], queues[index])
            vars(copies[node]).update(index=index, node_id=ids[index])
            if not has_given_id(node):
                vars(copies[node])["_has_generated_id"] = True
        freeze(
            self,
            tasks=tuple(copies[node] for node in nodes),
            on_error=OnError(self.on_error),
            output=None if self.output is None else copies[cast("AnyNode", self.output)],
            success_policy=_frozen_policy(self.success_policy, copies),
            _serial_number=next(_serial_numbers),
        )


def no_definition_key(owner: str) -> WorkflowValidationError:
    """Describe a workflow that cannot be found again by a worker."""
    return WorkflowValidationError(
        f"{owner} has no definition_key",
        ErrorCode.WORKFLOW_NO_DEFINITION_KEY,
        help_text='name it for good: definition_key="shop.import.v1"',
    )


def next_serial_number() -> int:
    """Return a number that is lower than that of each spec made from now on."""
    return next(_serial_numbers)


def was_made_since(spec: WorkflowSpec[Any], serial_number: int) -> bool:
    """Whether a spec was constructed after a call of `next_serial_number`."""
    return cast("int", vars(spec)["_serial_number"]) > serial_number


def rename_spec(
    spec: WorkflowSpec[Any], key: str | None, definition: "type[WorkflowDefinition[Any]]"
) -> None:
    """Give a spec the key of the definition whose `build_with` made it."""
    vars(spec).update(definition_key=key, workflow_def_cls=definition)


def _stranger_problems(nodes: Sequence[object]) -> list[HorsiesError]:
    found: list[HorsiesError] = []
    for node in nodes:
        if not isinstance(node, NODE_CLASSES):
            found.append(
                WorkflowValidationError(
                    f"tasks holds {type(node).__name__}, which is not a node",
                    ErrorCode.WORKFLOW_NO_NODES,
                    notes=[f"found {node!r:.200}"],
                    help_text="make a node of a task: my_task.node()(...) or TaskNode(fn=my_task)",
                )
            )
        elif isinstance(node, SubWorkflowNode) and not hasattr(node.workflow_def, "get_own_key"):
            found.append(
                WorkflowValidationError(
                    f"workflow_def must be a WorkflowDefinition, got {node.workflow_def!r:.200}",
                    ErrorCode.WORKFLOW_NO_DEFINITION_KEY,
                    help_text="give the class itself: SubWorkflowNode(workflow_def=Import)",
                )
            )
    return found


def _unknown_policy(found: object) -> WorkflowValidationError:
    return WorkflowValidationError(
        f"on_error must be 'fail' or 'pause', got {found!r}",
        help_text="use OnError.FAIL or OnError.PAUSE",
    )


def _resolve_queues(
    nodes: Sequence[AnyNode], rules: AppRules | None, problems: list[HorsiesError]
) -> list[ResolvedQueue | None]:
    queues: list[ResolvedQueue | None] = []
    for node in nodes:
        queue = None
        if rules is not None and isinstance(node, TaskNode):
            try:
                queue = rules.resolve(node)
            except HorsiesError as error:
                problems.append(error)
        queues.append(queue)
    return queues


def _freeze_node(
    node: AnyNode,
    copies: Mapping[AnyNode, AnyNode],
    call: CheckedCall | None,
    queue: ResolvedQueue | None,
) -> None:
    """Let a copy refer only to copies."""
    changes: dict[str, object] = {
        "waits_for": tuple(copies[other] for other in each_once(node.waits_for))
    }
    if isinstance(node, (TaskNode, SubWorkflowNode)):
        sources = {name: copies[source] for name, source in node.args_from.items()}
        context = node.workflow_ctx_from
        changes |= {
            "kwargs": frozen_mapping(node.kwargs),
            "kwargs_json": None if call is None else call.kwargs_json,
            "args_from": MappingProxyType(sources),
            "workflow_ctx_from": None
            if context is None
            else tuple(copies[other] for other in each_once(context)),
        }
    if isinstance(node, TaskNode):
        changes["each"] = None if node.each is None else copies[node.each]
        changes["each_as"] = None if call is None else call.each_as
        if queue is not None:
            changes |= {"queue": queue.name, "priority": node.priority or queue.priority}
    freeze(node, **changes)


def _frozen_policy(
    policy: SuccessPolicy | None, copies: Mapping[AnyNode, AnyNode]
) -> SuccessPolicy | None:
    if policy is None:
        return None
    cases: list[SuccessCase] = []
    for case in policy.cases:
        made = SuccessCase(tuple(copies[node] for node in case.required))
        freeze(made)
        cases.append(made)
    optional = policy.optional
    frozen = SuccessPolicy(
        tuple(cases), None if optional is None else tuple(copies[node] for node in optional)
    )
    freeze(frozen)
    return frozen


def _write_back(nodes: Sequence[AnyNode], ids: Sequence[str]) -> None:
    """Let the caller's nodes know their place, so that results can be looked up by them."""
    for index, node in enumerate(nodes):
        if is_frozen(node):
            continue  # it belongs to another spec
        is_given = has_given_id(node)
        vars(node).update(index=index, node_id=ids[index])
        if not is_given:
            vars(node)["_has_generated_id"] = True
