"""The phases of `app.check` (docs/contract/errors.md §4).

A phase collects all its errors, and the first phase with errors ends the check.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Protocol

from horsies.broker.postgres import PostgresBroker
from horsies.codes import ErrorCode
from horsies.config import AppConfig
from horsies.config.exceptions import default_code_problems, mapper_problems
from horsies.errors import ConfigurationError, HorsiesError, SourceLocation, TaskDefinitionError
from horsies.result import BUILTIN_CODE_REGISTRY, Err, OperationalErrorCode
from horsies.tasks.definition import TaskDefinition
from horsies.tasks.discovery import import_problems, loaded_modules
from horsies.tasks.mistakes import collected_mistakes, unique
from horsies.tasks.options import read_task_options
from horsies.tasks.retry import RETRYABLE_BUILT_IN, never_retried
from horsies.workflows.builders import WorkflowBuilder, builder_problems, undecorated_problems
from horsies.workflows.definition import WorkflowDefinition
from horsies.workflows.spec import no_definition_key


class CheckedTask(Protocol):
    """The part of a task function that `check` needs."""

    @property
    def definition(self) -> TaskDefinition: ...
    @property
    def task_options_json(self) -> str: ...
    @property
    def exception_mapper(self) -> Mapping[type[BaseException], str] | None: ...
    @property
    def default_unhandled_error_code(self) -> str | None: ...


class CheckedApp(Protocol):
    """The part of an app that `check` needs."""

    @property
    def config(self) -> AppConfig: ...
    @property
    def mistakes(self) -> Sequence[HorsiesError]: ...
    @property
    def tasks(self) -> Mapping[str, CheckedTask]: ...
    def get_discovered_task_modules(self) -> list[str]: ...
    def get_workflow_builders(self) -> list[WorkflowBuilder]: ...
    def get_broker(self) -> PostgresBroker: ...
    def definition(self, task_name: str) -> TaskDefinition | None: ...


def check(app: CheckedApp, *, live: bool) -> list[HorsiesError]:
    """Run the phases in order and return the errors of the first one that has any."""
    phases = [
        _definitions,
        _builders,
        _undecorated_builders,
        _schedules,
        _policy_safety,
        *([_database, _stored_schedules] if live else []),
    ]
    with collected_mistakes() as mistakes:
        errors = [*app.mistakes, *_imports(app, mistakes)]
    if errors:
        # What is known of the other modules is told in the same run; nothing is run for it.
        static = (_definitions, _undecorated_builders, _policy_safety)
        return unique([*errors, *(error for phase in static for error in phase(app))])
    for phase in phases:
        if errors := list(phase(app)):
            return errors
    return []


def _imports(app: CheckedApp, mistakes: list[HorsiesError]) -> list[HorsiesError]:
    """Import every entry; `mistakes` receives wrong definitions that did not end its import."""
    for entry in app.get_discovered_task_modules():
        mistakes.extend(import_problems(entry))
    return mistakes


def _definitions(app: CheckedApp) -> Iterator[HorsiesError]:
    for module in _discovered(app):
        for cls in list(vars(module).values()):
            is_own = isinstance(cls, type) and cls.__module__ == module.__name__
            if is_own and issubclass(cls, WorkflowDefinition) and cls.get_own_key() is None:
                yield no_definition_key(f"{cls.__module__}.{cls.__qualname__}")


def _builders(app: CheckedApp) -> Iterator[HorsiesError]:
    for builder in app.get_workflow_builders():
        yield from builder_problems(builder)


def _undecorated_builders(app: CheckedApp) -> Iterator[HorsiesError]:
    for module in _discovered(app):
        yield from undecorated_problems(module, app.get_workflow_builders())


def _schedules(app: CheckedApp) -> Iterator[HorsiesError]:
    if app.config.schedule is not None:  # imported only where there are schedules
        from horsies.scheduling.checks import problems_in_code

        yield from problems_in_code(app)


def _discovered(app: CheckedApp) -> list[ModuleType]:
    entries = app.get_discovered_task_modules()
    found = {module.__name__: module for entry in entries for module in loaded_modules(entry)}
    return list(found.values())


def _policy_safety(app: CheckedApp) -> Iterator[HorsiesError]:
    config = app.config
    yield from _code_problems(
        config.exception_mapper, config.default_unhandled_error_code, "AppConfig"
    )
    for name, task in app.tasks.items():
        owner = f"task {name!r}"
        yield from task.definition.problems()
        yield from _code_problems(
            task.exception_mapper,
            task.default_unhandled_error_code,
            owner,
            task.definition.location,
        )
        yield from _useless_retries(task, owner)
        options = read_task_options(task.task_options_json)
        if isinstance(options, Err):
            yield TaskDefinitionError(
                f"{owner}: {options.err_value}",
                ErrorCode.TASK_INVALID_OPTIONS,
                task.definition.location,
                help_text="let @app.task write task_options_json and do not assign it yourself",
            )


def _useless_retries(task: CheckedTask, owner: str) -> Iterator[HorsiesError]:
    policy = task.definition.retry_policy
    useless = never_retried(policy.auto_retry_for) if policy is not None else []
    if useless:
        yield TaskDefinitionError(
            f"{owner}: auto_retry_for names codes that are never retried: {', '.join(useless)}",
            ErrorCode.TASK_INVALID_OPTIONS,
            task.definition.location,
            ["a retry could not change their outcome, or the task has not failed"],
            f"remove them; of the built-in codes only {', '.join(RETRYABLE_BUILT_IN)} can be\n"
            "retried, and any code of your own",
        )


def _code_problems(
    mapper: Mapping[type[BaseException], str] | None,
    default: str | None,
    owner: str,
    location: SourceLocation | None = None,
) -> Sequence[HorsiesError]:
    found: list[HorsiesError] = []
    if mapper is not None:
        found += mapper_problems(mapper, owner=owner, location=location)
    if default is not None:
        found += default_code_problems(default, owner=owner, location=location)
    return found or list(_reserved_codes(mapper or {}, default, owner, location))


def _reserved_codes(
    mapper: Mapping[type[BaseException], str],
    default: str | None,
    owner: str,
    location: SourceLocation | None,
) -> Iterator[HorsiesError]:
    codes = list(mapper.values())
    if default not in (None, OperationalErrorCode.UNHANDLED_EXCEPTION.value):
        codes.append(default)
    for code in codes:
        if code in BUILTIN_CODE_REGISTRY:
            yield ConfigurationError(
                f"{owner}: {code!r} is a built-in error code and cannot be one of your own",
                ErrorCode.CHECK_RESERVED_CODE_COLLISION,
                location,
                help_text="choose another code, for example with your own prefix",
            )


def _database(app: CheckedApp) -> Iterator[HorsiesError]:
    pong = app.get_broker().ping(timeout_ms=10_000)
    if isinstance(pong, Err):
        yield ConfigurationError(
            f"the database does not answer: {pong.err_value.message}",
            ErrorCode.BROKER_INVALID_URL,
            help_text="check the URL, that the server is running, and that it accepts this user",
        )


def _stored_schedules(app: CheckedApp) -> Iterator[HorsiesError]:
    from horsies.scheduling.checks import stored_problems

    yield from stored_problems(app, app.get_broker().database)
