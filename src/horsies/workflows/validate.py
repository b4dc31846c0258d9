"""All rules a workflow must keep before it can start (docs/contract/workflows.md §11)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from horsies.codec.signature import SignatureCodec
from horsies.codes import ErrorCode
from horsies.errors import HorsiesError, ValidationReport, WorkflowValidationError
from horsies.workflows.calls import CheckedCall, build_codec, check_call, task_codec
from horsies.workflows.graph import describe, graph_problems, is_among
from horsies.workflows.nodes import (
    UNKNOWN_TYPE,
    AnyNode,
    EventNode,
    Node,
    SleepNode,
    SubWorkflowNode,
    SuccessPolicy,
    TaskNode,
    is_short_text,
)
from horsies.workflows.wiring import fits, type_name

if TYPE_CHECKING:
    from horsies.workflows.definition import WorkflowDefinition

_JOINS = ("all", "any", "quorum")
_BOUND_NAMES = frozenset({"app", "cls"})


@dataclass(frozen=True, slots=True)
class Draft:
    """A workflow before it is a spec."""

    name: str
    nodes: Sequence[AnyNode]
    ids: Sequence[str]
    output: Node[Any] | None
    success_policy: SuccessPolicy | None
    workflow_def_cls: "type[WorkflowDefinition[Any]] | None"


def raise_problems(problems: Iterable[HorsiesError]) -> None:
    """Raise nothing, the only problem, or all of them as one error."""
    error = ValidationReport("workflow", list(problems)).to_error()
    if error is not None:
        raise error


def check_draft(draft: Draft) -> tuple[list[HorsiesError], list[CheckedCall | None]]:
    """Return all problems of a workflow, and what follows from the call of each node."""
    problems: list[HorsiesError] = [*_spec_problems(draft)]
    codecs: dict[object, SignatureCodec] = {}
    calls: list[CheckedCall | None] = []
    for node, node_id in zip(draft.nodes, draft.ids, strict=True):
        problems += _node_problems(node, node_id)
        call = _check_node_call(node, node_id, codecs)
        calls.append(call)
        problems += [] if call is None else call.problems
    return problems, calls


def output_problems(
    workflow_def_cls: "type[WorkflowDefinition[Any]] | None", output: Node[Any] | None
) -> Iterator[WorkflowValidationError]:
    """Yield a problem if the definition promises another type than its output has."""
    if workflow_def_cls is None or output is None or not isinstance(output, Node):
        return
    promised, given = workflow_def_cls.get_ok_type(), output.ok_type
    if UNKNOWN_TYPE not in (promised, given) and not fits(given, promised):
        yield WorkflowValidationError(
            f"{workflow_def_cls.__qualname__} promises {type_name(promised)}, "
            f"but its output is {type_name(given)}",
            ErrorCode.WORKFLOW_OUTPUT_TYPE_MISMATCH,
            notes=[f"output {output.name!r}"],
            help_text=f"inherit from WorkflowDefinition[{type_name(given)}], "
            "or choose another output",
        )


def priority_problem(priority: object, node_id: str) -> WorkflowValidationError | None:
    """Describe a priority that no queue has."""
    if isinstance(priority, int) and not isinstance(priority, bool) and 1 <= priority <= 100:
        return None
    return WorkflowValidationError(
        f"node {node_id!r}: priority must be an integer from 1 to 100, got {priority!r}",
        ErrorCode.WORKFLOW_UNRESOLVED_PRIORITY,
        help_text="1 is the most urgent, 100 the least",
    )


def _spec_problems(draft: Draft) -> Iterator[WorkflowValidationError]:
    if not is_text(draft.name):
        yield WorkflowValidationError(
            "a workflow needs a name", ErrorCode.WORKFLOW_NO_NAME, help_text='name="import"'
        )
    if not draft.nodes:
        yield WorkflowValidationError(
            f"workflow {draft.name!r} has no tasks",
            ErrorCode.WORKFLOW_NO_NODES,
            help_text="give at least one node",
        )
    yield from graph_problems(draft.nodes, draft.ids)
    positions = {node: index for index, node in enumerate(draft.nodes)}
    if draft.output is not None and not is_among(draft.output, positions):
        yield WorkflowValidationError(
            f"output {describe(draft.output)} is not in workflow {draft.name!r}",
            ErrorCode.WORKFLOW_INVALID_OUTPUT,
            help_text="the output must be one of the workflow's nodes",
        )
    if draft.success_policy is not None:
        yield from _policy_problems(draft.success_policy, positions)
    yield from output_problems(draft.workflow_def_cls, draft.output)


def _policy_problems(
    policy: SuccessPolicy, positions: dict[AnyNode, int]
) -> Iterator[WorkflowValidationError]:
    def problem(message: str) -> WorkflowValidationError:
        return WorkflowValidationError(
            f"success policy: {message}",
            ErrorCode.WORKFLOW_INVALID_SUCCESS_POLICY,
            help_text="SuccessPolicy(cases=[SuccessCase(required=[node, ...]), ...])",
        )

    if not policy.cases:
        yield problem("it needs at least one SuccessCase")
    for number, case in enumerate(policy.cases):
        if not case.required:
            yield problem(f"case {number} has no required tasks")
        for node in case.required:
            if not is_among(node, positions):
                yield problem(f"case {number} requires {describe(node)}, which is not in workflow")
    for node in policy.optional or ():
        if not is_among(node, positions):
            yield problem(f"optional {describe(node)} is not in workflow")


def _node_problems(node: AnyNode, node_id: str) -> Iterator[WorkflowValidationError]:
    yield from _join_problems(node, node_id)
    if vars(node).get("args"):
        yield WorkflowValidationError(
            f"node {node_id!r}: positional arguments are not supported",
            ErrorCode.WORKFLOW_POSITIONAL_ARGS_NOT_SUPPORTED,
            help_text="put them into kwargs by name",
        )
    if isinstance(node, (TaskNode, SubWorkflowNode)):
        yield from _source_problems(node, node_id)
    if isinstance(node, TaskNode):
        yield from _option_problems(node, node_id)
    elif isinstance(node, SleepNode):
        yield from _sleep_problems(node, node_id)
    elif isinstance(node, EventNode):
        yield from _event_problems(node, node_id)


def _join_problems(node: AnyNode, node_id: str) -> Iterator[WorkflowValidationError]:
    def problem(message: str, cure: str) -> WorkflowValidationError:
        return WorkflowValidationError(
            f"node {node_id!r}: {message}", ErrorCode.WORKFLOW_INVALID_JOIN, help_text=cure
        )

    count, wanted = len(set(map(id, node.waits_for))), node.min_success
    if node.join not in _JOINS:
        yield problem(f"unknown join {node.join!r}", f"use one of {', '.join(_JOINS)}")
    elif node.join != "quorum":
        if wanted is not None:
            yield problem("min_success is only used with join='quorum'", "remove it, or set join")
    elif wanted is None:
        yield problem("join='quorum', but min_success is not set", "say how many must succeed")
    elif wanted < 1:
        yield problem(f"min_success must be >= 1, got {wanted}", "say how many must succeed")
    elif wanted > count:
        yield problem(f"min_success={wanted} exceeds dependency count {count}", "lower it")


def _source_problems(
    node: TaskNode[Any] | SubWorkflowNode[Any], node_id: str
) -> Iterator[WorkflowValidationError]:
    waits_for = set(map(id, node.waits_for))
    sources = [(f"args_from[{name!r}]", source) for name, source in node.args_from.items()]
    if isinstance(node, TaskNode) and node.each is not None:
        sources.append(("each", node.each))
    for place, source in sources:
        if id(source) not in waits_for:
            yield WorkflowValidationError(
                f"node {node_id!r}: {place} is {describe(source)}, which is not in waits_for",
                ErrorCode.WORKFLOW_INVALID_ARGS_FROM,
                help_text="add it to waits_for",
            )
    for source in node.workflow_ctx_from or ():
        if id(source) not in waits_for:
            yield WorkflowValidationError(
                f"node {node_id!r}: workflow_ctx_from names {describe(source)}, "
                "which is not in waits_for",
                ErrorCode.WORKFLOW_INVALID_CTX_FROM,
                help_text="add it to waits_for",
            )


def _option_problems(node: TaskNode[Any], node_id: str) -> Iterator[WorkflowValidationError]:
    if node.priority is not None and (problem := priority_problem(node.priority, node_id)):
        yield problem
    if node.good_until is not None and not _is_aware(node.good_until):
        yield _option_problem(node_id, "good_until must be a timezone-aware datetime")
    if node.each is None:
        return
    if not _is_count(node.max_in_flight):
        yield _option_problem(node_id, f"max_in_flight must be >= 1, got {node.max_in_flight!r}")
    if node.join != "all":
        yield WorkflowValidationError(
            f"node {node_id!r}: each needs join='all'",
            ErrorCode.WORKFLOW_INVALID_JOIN,
            help_text="without the producer's list there is nothing to run",
        )


def _sleep_problems(node: SleepNode, node_id: str) -> Iterator[WorkflowValidationError]:
    if (node.duration is None) is (node.until is None):
        yield _option_problem(node_id, "a sleep takes exactly one of duration and until")
    elif node.duration is not None:
        yield from _duration_problems("duration", node.duration, node_id)
    elif not _is_aware(node.until):
        yield _option_problem(node_id, "until must be a timezone-aware datetime")


def _event_problems(node: EventNode[Any], node_id: str) -> Iterator[WorkflowValidationError]:
    if not is_short_text(node.event_key):
        yield _option_problem(node_id, "the key of an event has 1 to 255 characters")
    if node.timeout is not None:
        yield from _duration_problems("timeout", node.timeout, node_id)


def _duration_problems(
    name: str, duration: object, node_id: str
) -> Iterator[WorkflowValidationError]:
    if not isinstance(duration, timedelta) or duration < timedelta(0):
        yield _option_problem(node_id, f"{name} must be a timedelta of zero or more")


def _option_problem(node_id: str, message: str) -> WorkflowValidationError:
    # The contract's codes name no such option; the message says it all.
    return WorkflowValidationError(f"node {node_id!r}: {message}")


def is_text(value: object) -> bool:
    """Whether a value is a text that says something."""
    return isinstance(value, str) and bool(value.strip())


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1


def _is_aware(instant: object) -> bool:
    return isinstance(instant, datetime) and instant.tzinfo is not None


def _check_node_call(
    node: AnyNode, node_id: str, codecs: dict[object, SignatureCodec]
) -> CheckedCall | None:
    """Check what a node passes on; functions used by many nodes are read once."""
    if isinstance(node, TaskNode):
        codec = _remembered(codecs, node.fn, task_codec)
        call = check_call(node, node_id, codec)
        if node.workflow_ctx_from and "workflow_ctx" not in codec.names:
            call.problems.append(
                WorkflowValidationError(
                    f"node {node_id!r}: {node.name!r} is missing workflow_ctx param",
                    ErrorCode.WORKFLOW_CTX_PARAM_MISSING,
                    help_text="declare it: workflow_ctx: WorkflowContext | None = None",
                )
            )
        return call
    if isinstance(node, SubWorkflowNode):
        return _check_child(node, node_id, codecs)
    return None


def _remembered(
    codecs: dict[object, SignatureCodec], source: Any, read: Callable[[Any], SignatureCodec]
) -> SignatureCodec:
    # By id: task functions of users need not be hashable.
    codec = codecs.get(id(source))
    if codec is None:
        codec = codecs[id(source)] = read(source)
    return codec


def _check_child(
    node: SubWorkflowNode[Any], node_id: str, codecs: dict[object, SignatureCodec]
) -> CheckedCall:
    definition = node.workflow_def
    if definition.get_own_key() is None:
        return CheckedCall([_no_key(definition, node_id)])
    given = [*node.kwargs, *node.args_from]
    if not definition.takes_parameters():
        return CheckedCall([_no_parameters(definition, node_id)] if given else [])
    if bound := sorted(_BOUND_NAMES.intersection(given)):
        return CheckedCall([_bound_name(", ".join(bound), node_id)])
    try:
        codec = _remembered(codecs, definition, lambda found: build_codec(found.build_with))
    except TypeError as error:
        return CheckedCall([_bound_name(str(error), node_id)])
    return check_call(node, node_id, codec)


def _no_key(definition: "type[WorkflowDefinition[Any]]", node_id: str) -> WorkflowValidationError:
    return WorkflowValidationError(
        f"node {node_id!r}: {definition.__qualname__} has no definition_key of its own",
        ErrorCode.WORKFLOW_NO_DEFINITION_KEY,
        help_text='declare it on the class: definition_key = "shop.import.v1"',
    )


def _no_parameters(
    definition: "type[WorkflowDefinition[Any]]", node_id: str
) -> WorkflowValidationError:
    return WorkflowValidationError(
        f"node {node_id!r}: {definition.__qualname__} takes no parameters",
        ErrorCode.WORKFLOW_SUBWORKFLOW_PARAMS_REQUIRE_BUILD_WITH,
        help_text="override build_with(cls, app, *, ...) to use them, or remove them",
    )


def _bound_name(found: str, node_id: str) -> WorkflowValidationError:
    return WorkflowValidationError(
        f"node {node_id!r}: build_with gets its first arguments from the engine ({found})",
        ErrorCode.WORKFLOW_SUBWORKFLOW_BUILD_WITH_BINDING,
        help_text="build_with(cls, app, *, ...): use other names for your parameters",
    )
