"""Which arguments and fields are secret, by their annotations."""

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, SecretBytes, SecretStr

MASK = "•••"


class Secret:
    """Marks an argument or a field that viewers see masked: `card: Annotated[str, Secret]`."""


def is_secret(annotation: object) -> bool:
    """Whether values of this annotation are masked as a whole."""
    if get_origin(annotation) is Annotated:
        kind, *notes = get_args(annotation)
        return any(note is Secret or isinstance(note, Secret) for note in notes) or is_secret(kind)
    if get_origin(annotation) in (Union, types.UnionType):
        return any(is_secret(part) for part in get_args(annotation))
    return annotation is SecretStr or annotation is SecretBytes


def masked(value: Any, annotation: object) -> Any:
    """A stored JSON value with what its annotation calls secret masked, at any depth."""
    if is_secret(annotation):
        return MASK
    parts = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return masked(value, parts[0])
    if get_origin(annotation) in (Union, types.UnionType):
        for part in parts:
            value = masked(value, part)
        return value
    if isinstance(value, Mapping):
        return _masked_fields(value, annotation)
    if isinstance(value, Sequence) and not isinstance(value, str) and parts:
        return [masked(one, parts[0]) for one in value]
    return value


def _masked_fields(value: Mapping[str, Any], annotation: object) -> dict[str, Any]:
    fields = _fields(annotation)
    parts = get_args(annotation)
    if not fields and len(parts) == 2:  # dict[str, T]
        return {name: masked(one, parts[1]) for name, one in value.items()}
    return {name: masked(one, fields.get(name)) for name, one in value.items()}


def _fields(annotation: object) -> Mapping[str, object]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {
            name: Annotated[(field.annotation, *field.metadata, None)]
            for name, field in annotation.model_fields.items()
        }
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return get_type_hints(annotation, include_extras=True)
    return {}
