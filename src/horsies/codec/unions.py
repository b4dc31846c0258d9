"""Take annotations apart: what stands behind Annotated, and the members of a union."""

import types
from typing import Annotated, Union, get_args, get_origin

_UNIONS: tuple[object, ...] = (Union, types.UnionType)


def unwrapped(annotation: object) -> object:
    """Return the type behind Annotated."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def is_union(annotation: object) -> bool:
    """Whether an annotation is a union."""
    return get_origin(unwrapped(annotation)) in _UNIONS


def members(annotation: object) -> tuple[object, ...]:
    """Return the members of a union, nested ones included; any other type is its only member."""
    if not is_union(annotation):
        return (annotation,)
    arguments = get_args(unwrapped(annotation))
    return tuple(member for argument in arguments for member in members(argument))
