"""The annotations of one task: resolved as soon as they can be, refused when they cannot be used.

An annotation decides how an argument is checked, stored and read. One that has no meaning at run
time would leave its argument unchecked, so it is an error (docs/contract/tasks.md §6.1).
"""

import ast
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

from horsies.codec.annotated import schema_problem
from horsies.codes import ErrorCode
from horsies.errors import SourceLocation, TaskDefinitionError


class Annotations:
    """What the annotations of a function mean; names that are defined later are looked up again."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._is_checked = False
        self.declared = inspect.get_annotations(function)
        self.resolved = resolve_annotations(function)

    @property
    def is_settled(self) -> bool:
        """Whether every annotation could be evaluated."""
        return len(self.resolved) == len(self.declared)

    def resolve_again(self) -> bool:
        """Evaluate once more what was not defined before; whether that has found anything."""
        if self.is_settled:
            return False
        before = len(self.resolved)
        self.resolved.update(resolve_annotations(self._function))
        return len(self.resolved) > before

    def problems(
        self, owner: str, location: SourceLocation | None, ok_type: object
    ) -> list[TaskDefinitionError]:
        """What cannot be used of them; asked again only while there is something."""
        if self._is_checked:
            return []
        found = [*self._undefined(owner, location), *self._unusable(owner, location, ok_type)]
        self._is_checked = not found
        return found

    def _undefined(
        self, owner: str, location: SourceLocation | None
    ) -> Iterator[TaskDefinitionError]:
        for name, annotation in self.declared.items():
            if name not in self.resolved:
                yield _refusal(
                    f"{owner}: {_place(name)} has an annotation that cannot be evaluated",
                    undefined_name(self._function, annotation),
                    location,
                )

    def _unusable(
        self, owner: str, location: SourceLocation | None, ok_type: object
    ) -> Iterator[TaskDefinitionError]:
        used = {name: value for name, value in self.resolved.items() if name != "return"}
        for name, annotation in {**used, "return": ok_type}.items():
            if problem := schema_problem(annotation):
                yield _refusal(
                    f"{owner}: {_place(name)} has a type that cannot be stored",
                    (problem, _CURE_OF_TYPES),
                    location,
                )


_CURE_OF_TYPES = (
    "use plain types, dataclasses, TypedDicts or pydantic models; a class of your own needs\n"
    "__get_pydantic_core_schema__. docs/how-to/types.md lists what can be sent"
)


def undefined_name(function: Callable[..., object], annotation: object) -> tuple[str, str]:
    """Why an annotation cannot be evaluated, and what to do about it."""
    error = _evaluation_error(function, annotation)
    name = getattr(error, "name", None)
    if not isinstance(error, NameError) or name is None:
        return f"{annotation!r}: {type(error).__name__}: {error}", "correct the annotation"
    if name in _names_for_type_checkers(function):
        return (
            f"{name} is imported under TYPE_CHECKING, so it does not exist at run time",
            f"import {name} outside of `if TYPE_CHECKING:`, so that arguments can be read by it",
        )
    return (
        f"the name {name!r} is not defined in {function.__module__}",
        f"define or import {name} at the top level of the module",
    )


def resolve_annotations(function: Callable[..., object]) -> dict[str, object]:
    """Evaluate annotations; leave out each one that cannot be evaluated."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001  # user code: annotations
        resolved: dict[str, object] = {}
    for name, annotation in inspect.get_annotations(function).items():
        try:
            resolved[name] = _evaluate(function, annotation)
        except Exception:  # noqa: BLE001, S112  # user code: annotations
            continue
    return resolved


def _evaluate(function: Callable[..., object], annotation: object) -> object:
    def holder() -> None: ...

    holder.__annotations__ = {"value": annotation}
    names = getattr(function, "__globals__", {})
    return typing.get_type_hints(holder, names, include_extras=True)["value"]


def _evaluation_error(function: Callable[..., object], annotation: object) -> Exception:
    try:
        _evaluate(function, annotation)
    except Exception as error:  # noqa: BLE001  # user code: annotations
        return error
    return ValueError("it can be evaluated now")


def _names_for_type_checkers(function: Callable[..., object]) -> set[str]:
    """The names that the module of a function binds only under TYPE_CHECKING."""
    file = getattr(sys.modules.get(function.__module__), "__file__", None)
    try:
        tree = ast.parse(Path(file or "").read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeError):
        return set()
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _is_for_types(node)]
    return {
        (alias.asname or alias.name).partition(".")[0]
        for block in blocks
        for node in ast.walk(block)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }


def _is_for_types(block: ast.If) -> bool:
    test = block.test
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def _place(name: str) -> str:
    return "the return type" if name == "return" else f"parameter {name!r}"


def _refusal(
    message: str, reason: tuple[str, str], location: SourceLocation | None
) -> TaskDefinitionError:
    note, cure = reason
    code = ErrorCode.TASK_INVALID_SIGNATURE
    return TaskDefinitionError(message, code, location, [note], cure)
