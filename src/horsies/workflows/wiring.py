"""Does the result of one node fit the parameter of another? (docs/contract/workflows.md §11.1)."""

from collections.abc import Sequence
from typing import Any, TypeVar, get_args, get_origin

from horsies.codec.unions import is_union, members, unwrapped
from horsies.result import TaskResult
from horsies.workflows.nodes import UNKNOWN_TYPE


def fits(source: object, target: object) -> bool:
    """Whether a value of type `source` can stand where `target` is declared."""
    source, target = _plain(source), _plain(target)
    if source is Any or target is Any or target is object or source == target:
        return True
    if is_union(source):
        return all(fits(member, target) for member in members(source))
    if is_union(target):
        return any(fits(source, member) for member in members(target))
    return _is_subclass(source, target)


def result_target(annotation: object) -> object:
    """Return X of a parameter annotated `TaskResult[X, ...]`, alone or once in a union.

    Any other annotation gives UNKNOWN_TYPE.
    """
    found = [
        get_args(declared)[0]
        for member in members(annotation)
        if get_origin(declared := unwrapped(member)) is TaskResult
    ]
    return found[0] if len(found) == 1 else UNKNOWN_TYPE


def element_type(sequence: object) -> object:
    """Return the type of the elements of a list, tuple or Sequence; UNKNOWN_TYPE for others."""
    sequence = _plain(sequence)
    if sequence is Any:
        return Any
    origin, arguments = get_origin(sequence) or sequence, get_args(sequence)
    is_sequence = isinstance(origin, type) and issubclass(origin, Sequence)
    if not is_sequence or origin in (str, bytes, bytearray, memoryview, range):
        return UNKNOWN_TYPE
    kinds = [argument for argument in arguments if argument is not Ellipsis]
    if not kinds:
        return Any
    union: Any = kinds[0]
    for kind in kinds[1:]:
        union = union | kind
    return union


def type_name(annotation: object) -> str:
    """Write a type as in source code."""
    if annotation is UNKNOWN_TYPE:
        return "unknown"
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation.__qualname__
    return str(annotation)


def _plain(annotation: object) -> object:
    annotation = unwrapped(annotation)
    if annotation is None:
        return type(None)
    if isinstance(annotation, TypeVar):
        return Any if annotation.__bound__ is None else annotation.__bound__
    return annotation


def _is_subclass(source: object, target: object) -> bool:
    """Like issubclass; parameters of generic types must fit one by one."""
    source_class, target_class = get_origin(source) or source, get_origin(target) or target
    if not (isinstance(source_class, type) and isinstance(target_class, type)):
        return False
    try:
        if not issubclass(source_class, target_class):
            return False
    except TypeError:  # a protocol that cannot be checked at run time
        return False
    wanted = get_args(target)
    if not wanted:
        return True
    given = get_args(source)
    if target_class is not source_class and tuple in (target_class, source_class):
        return fits(element_type(source), element_type(target))
    return len(given) == len(wanted) and all(map(_same_or_fits, given, wanted))


def _same_or_fits(source: object, target: object) -> bool:
    return source is target or fits(source, target)
