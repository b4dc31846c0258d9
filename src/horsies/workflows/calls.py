"""Check what a node passes to its function: names, required parameters, types, storage."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from horsies.codec.injected import INJECTED_PARAMETERS
from horsies.codec.signature import SignatureCodec
from horsies.codec.unions import members
from horsies.codes import ErrorCode
from horsies.errors import WorkflowValidationError
from horsies.result import Err
from horsies.tasks.annotations import resolve_annotations
from horsies.tasks.definition import TaskDefinition
from horsies.workflows.factory import NodeReference
from horsies.workflows.nodes import UNKNOWN_TYPE, SubWorkflowNode, TaskNode
from horsies.workflows.wiring import element_type, fits, result_target, type_name

_CONTEXT, _META = INJECTED_PARAMETERS.values()


@dataclass(slots=True)
class CheckedCall:
    """What is wrong with a node's call, and what follows from it if nothing is."""

    problems: list[WorkflowValidationError] = field(default_factory=list[WorkflowValidationError])
    kwargs_json: str | None = None
    each_as: str | None = None


def task_codec(fn: Any) -> SignatureCodec:
    """Return the codec for the arguments of a task function or of any other callable."""
    definition = getattr(fn, "definition", None)
    if isinstance(definition, TaskDefinition):
        return definition.signature
    try:
        return SignatureCodec(fn, _annotations(fn, inspect.signature(fn)))
    except (TypeError, ValueError):  # no signature to be had: everything may be passed
        return SignatureCodec(_anything, {})


def build_codec(build_with: Callable[..., Any]) -> SignatureCodec:
    """Return the codec for the parameters of a bound `build_with`; TypeError if it takes no app."""
    annotations = resolve_annotations(build_with)
    try:
        return SignatureCodec(partial(build_with, None), annotations)
    except ValueError as error:
        raise TypeError(f"build_with does not take the app: {error}") from None


def check_call(
    node: TaskNode[Any] | SubWorkflowNode[Any], node_id: str, codec: SignatureCodec
) -> CheckedCall:
    """Check a node against the parameters of its function."""
    checked = CheckedCall()
    checked.problems += _name_problems(node, node_id, codec)
    if isinstance(node, TaskNode) and node.each is not None:
        checked.each_as = _open_parameter(node, node_id, codec, checked.problems)
    checked.problems += _missing_problems(node, node_id, codec, checked.each_as)
    checked.problems += _wiring_problems(node, node_id, codec)
    known = {name: value for name, value in node.kwargs.items() if _is_known(name, codec)}
    encoded = codec.encode_some(known)
    if isinstance(encoded, Err):
        checked.problems.append(_storage_problem(node, node_id, encoded.err_value))
    else:
        checked.kwargs_json = encoded.ok_value
    return checked


def _name_problems(
    node: TaskNode[Any] | SubWorkflowNode[Any], node_id: str, codec: SignatureCodec
) -> Iterator[WorkflowValidationError]:
    given = [*node.kwargs, *node.args_from]
    for name in dict.fromkeys(given):
        if not _is_known(name, codec):
            yield WorkflowValidationError(
                f"node {node_id!r}: {node.name!r} has no parameter {name!r}",
                ErrorCode.WORKFLOW_INVALID_KWARG_KEY,
                notes=[f"parameters: {', '.join(codec.names) or 'none'}"],
                help_text="check the spelling in kwargs and args_from",
            )
    for name in node.kwargs.keys() & node.args_from.keys():
        yield WorkflowValidationError(
            f"node {node_id!r}: {name!r} is in both kwargs and args_from",
            ErrorCode.WORKFLOW_KWARGS_ARGS_FROM_OVERLAP,
            help_text="keep one of them",
        )


def _is_known(name: object, codec: SignatureCodec) -> bool:
    return isinstance(name, str) and (name in codec.names or codec.takes_any_name)


def _missing_problems(
    node: TaskNode[Any] | SubWorkflowNode[Any],
    node_id: str,
    codec: SignatureCodec,
    each_as: str | None,
) -> Iterator[WorkflowValidationError]:
    missing = [name for name in _left_open(node, codec) if name != each_as]
    if missing and not (isinstance(node, TaskNode) and node.each is not None and each_as is None):
        yield WorkflowValidationError(
            f"node {node_id!r}: {node.name!r} needs {', '.join(missing)}",
            ErrorCode.WORKFLOW_MISSING_REQUIRED_PARAMS,
            help_text="give a value in kwargs, or another node's result in args_from",
        )


def _left_open(node: TaskNode[Any] | SubWorkflowNode[Any], codec: SignatureCodec) -> list[str]:
    """Return the required parameters that neither the node nor the engine provides."""
    provided = {*node.kwargs, *node.args_from}
    if isinstance(node, TaskNode):
        provided |= {_META}
        accepts_none = type(None) in members(codec.names.get(_CONTEXT))
        if node.workflow_ctx_from or accepts_none or codec.names.get(_CONTEXT) is Any:
            provided |= {_CONTEXT}
    return [name for name in codec.required_names if name not in provided]


def _open_parameter(
    node: TaskNode[Any],
    node_id: str,
    codec: SignatureCodec,
    problems: list[WorkflowValidationError],
) -> str | None:
    """Return the parameter that receives the elements, and report what is wrong with it."""
    candidates = _left_open(node, codec)
    name = node.each_as or (candidates[0] if len(candidates) == 1 else None)
    if name is None:
        problems.append(
            WorkflowValidationError(
                f"node {node_id!r}: which parameter of {node.name!r} receives the elements?",
                ErrorCode.WORKFLOW_MISSING_REQUIRED_PARAMS,
                notes=[f"candidates: {', '.join(candidates) or 'none is left open'}"],
                help_text="name it with each_as",
            )
        )
        return None
    if name not in codec.names or name in node.kwargs or name in node.args_from:
        code, reason = (
            (ErrorCode.WORKFLOW_KWARGS_ARGS_FROM_OVERLAP, "it is given already")
            if name in codec.names
            else (ErrorCode.WORKFLOW_INVALID_KWARG_KEY, f"{node.name!r} has no such parameter")
        )
        problems.append(
            WorkflowValidationError(
                f"node {node_id!r}: {name!r} cannot receive the elements: {reason}",
                code,
                notes=[f"parameters: {', '.join(codec.names) or 'none'}"],
                help_text="leave one parameter open for the elements and name it with each_as",
            )
        )
        return name
    given = UNKNOWN_TYPE if node.each is None else node.each.ok_type
    element, wanted = element_type(given), codec.names[name]
    if element is UNKNOWN_TYPE or not fits(element, wanted):
        problems.append(
            _type_problem(
                f"node {node_id!r}: the elements do not fit {name!r}",
                f"each is {type_name(given)}, {name} is {type_name(wanted)}",
                "the producer must return a list[X], tuple[X, ...] or Sequence[X] of that type",
            )
        )
    return name


def _wiring_problems(
    node: TaskNode[Any] | SubWorkflowNode[Any], node_id: str, codec: SignatureCodec
) -> Iterator[WorkflowValidationError]:
    for name, source in node.args_from.items():
        if name not in codec.names or not hasattr(source, "ok_type"):
            continue  # taken by **kwargs, or reported already
        given, wanted = source.ok_type, result_target(codec.names[name])
        if wanted is UNKNOWN_TYPE:
            yield _type_problem(
                f"node {node_id!r}: parameter {name!r} cannot receive a result",
                f"it is annotated {type_name(codec.names[name])}",
                f"annotate it: {name}: TaskResult[{_shown(given)}, TaskError]",
            )
        elif given is UNKNOWN_TYPE:
            yield _type_problem(
                f"node {node_id!r}: the type of what {name!r} receives is unknown",
                f"source {source.name!r}",
                "declare what the source returns: TaskResult[X, TaskError] of a task, "
                "or WorkflowDefinition[X]",
            )
        elif not fits(given, wanted):
            yield _type_problem(
                f"node {node_id!r}: the result of {source.name!r} does not fit {name!r}",
                f"it is {type_name(given)}, {name} wants {type_name(wanted)}",
                "change one of the two types",
            )


def _shown(given: object) -> str:
    return "X" if given is UNKNOWN_TYPE else type_name(given)


def _storage_problem(
    node: TaskNode[Any] | SubWorkflowNode[Any], node_id: str, error: Exception
) -> WorkflowValidationError:
    if any(_holds_reference(value) for value in node.kwargs.values()):
        return WorkflowValidationError(
            f"node {node_id!r}: from_node() inside kwargs",
            ErrorCode.WORKFLOW_INVALID_ARGS_FROM,
            notes=["a result is handed to a whole parameter, and its source not in waits_for"],
            help_text="use args_from={...} and waits_for=[...], or task.node()(name=from_node(n))",
        )
    return WorkflowValidationError(
        f"node {node_id!r}: kwargs cannot be stored: {error}",
        ErrorCode.WORKFLOW_KWARGS_NOT_SERIALIZABLE,
        help_text="pass values that JSON can hold and the parameter's annotation accepts",
    )


def _holds_reference(value: object) -> bool:
    pending, seen = [value], set[int]()
    while pending:
        item: Any = pending.pop()
        if isinstance(item, NodeReference):
            return True
        if isinstance(item, (Mapping, list, tuple, set, frozenset)) and id(item) not in seen:
            seen.add(id(item))
            pending.extend(item.values() if isinstance(item, Mapping) else item)
    return False


def _annotations(fn: Any, signature: inspect.Signature) -> dict[str, object]:
    function = inspect.unwrap(fn)
    called = function if inspect.isroutine(function) else type(function).__call__
    declared = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if parameter.annotation is not parameter.empty and not isinstance(parameter.annotation, str)
    }
    return {**declared, **resolve_annotations(called)}


def _anything(**kwargs: Any) -> None: ...


def _type_problem(message: str, note: str, cure: str) -> WorkflowValidationError:
    return WorkflowValidationError(
        message, ErrorCode.WORKFLOW_ARGS_FROM_TYPE_MISMATCH, notes=[note], help_text=cure
    )
