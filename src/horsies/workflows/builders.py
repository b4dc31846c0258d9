"""From an app to a spec: queues, priorities and broker; and the builders that `check` runs."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Protocol, TypeVar

from horsies.codes import ErrorCode
from horsies.config import AppConfig, QueueMode
from horsies.config.queues import DEFAULT_QUEUE_NAME
from horsies.errors import (
    HorsiesError,
    MultipleValidationErrors,
    SourceLocation,
    WorkflowValidationError,
    location_of,
)
from horsies.tasks.annotations import resolve_annotations
from horsies.tasks.queues import ResolvedQueue, resolve_queue
from horsies.workflows.nodes import TaskNode
from horsies.workflows.spec import AppRules, SpecBroker, WorkflowSpec

F = TypeVar("F", bound=Callable[..., WorkflowSpec[Any]])


class SpecApp(Protocol):
    """The part of an app that building a spec needs."""

    @property
    def config(self) -> AppConfig: ...
    def get_broker(self) -> SpecBroker: ...


@dataclass(frozen=True, slots=True)
class WorkflowBuilder:
    """A function that `check` runs, once per case."""

    fn: Callable[..., Any]
    cases: list[dict[str, Any]] | None
    location: SourceLocation | None


def make_spec(app: SpecApp, *, keeps_originals: bool = False, **fields: Any) -> WorkflowSpec[Any]:
    """Make a spec with the queues, the broker and the settings of an app."""
    return WorkflowSpec(
        **fields,
        broker=app.get_broker(),
        resend_on_transient_err=app.config.resend_on_transient_err,
        app_rules=AppRules(partial(resolve_node_queue, app.config), keeps_originals),
    )


def resolve_node_queue(config: AppConfig, node: TaskNode[Any]) -> ResolvedQueue:
    """Return the queue of a node: its own, else the task's, else the default one."""
    name = node.queue or getattr(node.fn, "task_queue_name", None) or DEFAULT_QUEUE_NAME
    is_default = config.queue_mode is QueueMode.DEFAULT and name == DEFAULT_QUEUE_NAME
    return resolve_queue(config, None if is_default else name)


def builder_problems(builder: WorkflowBuilder) -> Iterator[HorsiesError]:
    """Run a builder with its cases and yield what is wrong."""
    parameters = inspect.signature(builder.fn).parameters.values()
    named = {p.name: p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    required = {name for name, p in named.items() if p.default is p.empty}
    if builder.cases is None and required:
        yield _problem(
            builder,
            ErrorCode.WORKFLOW_CHECK_CASES_REQUIRED,
            f"{_name(builder)} has required parameters but no cases",
            f"required: {', '.join(sorted(required))}",
            "@app.workflow_builder(cases=[{...}])",
        )
        return
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for number, case in enumerate([{}] if builder.cases is None else builder.cases):
        unfit = _unfit_case(case, set(named), required, takes_any=takes_any)
        if unfit is not None:
            yield _problem(
                builder,
                ErrorCode.WORKFLOW_CHECK_CASE_INVALID,
                f"case {number} of {_name(builder)} does not fit its parameters",
                unfit,
                f"parameters: {', '.join(named) or 'none'}",
            )
            continue
        yield from _run(builder, number, case)


def undecorated_problems(
    module: ModuleType, builders: Sequence[WorkflowBuilder]
) -> Iterator[HorsiesError]:
    """Yield the functions of a module that return a spec without being checked builders."""
    known = {builder.fn for builder in builders}
    for function in list(vars(module).values()):
        if not inspect.isfunction(function) or function.__module__ != module.__name__:
            continue
        if function in known or getattr(function, "__horsies_no_check__", False) is True:
            continue
        if _returns_spec(function):
            yield WorkflowValidationError(
                f"{function.__qualname__} builds a workflow that check does not see",
                ErrorCode.WORKFLOW_CHECK_UNDECORATED_BUILDER,
                SourceLocation.from_function(function),
                help_text="put @app.workflow_builder() above it, or set "
                f"{function.__name__}.__horsies_no_check__ = True",
            )


def _returns_spec(function: Callable[..., Any]) -> bool:
    declared = resolve_annotations(function).get("return")
    found = getattr(declared, "__origin__", declared)
    return isinstance(found, type) and issubclass(found, WorkflowSpec)


def _unfit_case(
    case: object, known: set[str], required: set[str], *, takes_any: bool
) -> str | None:
    if not isinstance(case, dict):
        return f"it is {type(case).__name__}, not a dict"
    unknown = [str(key) for key in case if key not in known and not takes_any]
    missing = sorted(required - case.keys())
    if unknown:
        return f"unknown: {', '.join(unknown)}"
    return f"missing: {', '.join(missing)}" if missing else None


def _run(builder: WorkflowBuilder, number: int, case: Mapping[str, Any]) -> Iterator[HorsiesError]:
    try:
        built = builder.fn(**case)
    except MultipleValidationErrors as error:
        yield from error.report.errors
        return
    except HorsiesError as error:
        yield error
        return
    except Exception as error:  # noqa: BLE001  # user code: builders
        yield _problem(
            builder,
            ErrorCode.WORKFLOW_CHECK_BUILDER_EXCEPTION,
            f"case {number} of {_name(builder)} raised {type(error).__name__}",
            f"{type(error).__name__}: {error}",
            "a builder must make its workflow without a database or a network",
            location_of(error),
        )
        return
    if not isinstance(built, WorkflowSpec):
        yield _problem(
            builder,
            ErrorCode.WORKFLOW_CHECK_BUILDER_EXCEPTION,
            f"case {number} of {_name(builder)} returned no WorkflowSpec",
            f"returned {type(built).__name__}",
            "return app.workflow(...)",
        )


def _name(builder: WorkflowBuilder) -> str:
    return f"workflow builder {getattr(builder.fn, '__qualname__', builder.fn)!r}"


def _problem(  # the parts of one message
    builder: WorkflowBuilder,
    code: ErrorCode,
    message: str,
    note: str,
    cure: str,
    location: SourceLocation | None = None,
) -> WorkflowValidationError:
    return WorkflowValidationError(message, code, location or builder.location, [note], cure)
