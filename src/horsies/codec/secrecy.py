"""Which arguments and fields are secret, by their annotations; and secrets that must be stored.

pydantic writes its secret types as asterisks. A task needs the value, so the row holds it, as it
holds every other argument; viewers mask it.
"""

import base64
import dataclasses
import types
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import from_json, to_json

MASK = "•••"
PYDANTIC_MASK = "**********"


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


def masked_arguments(
    args: str | None, kwargs: str | None, annotations: Mapping[str, object]
) -> tuple[str | None, str | None]:
    """Stored arguments with what the parameters, in their order, call secret masked."""
    positional, named = _read(args, list), _read(kwargs, dict)
    kinds = [*annotations.values(), *[None] * len(positional or ())]
    if positional:
        args = _text([masked(*pair) for pair in zip(positional, kinds, strict=False)])
    if named:
        kwargs = _text({name: masked(one, annotations.get(name)) for name, one in named.items()})
    return args, kwargs


def _read(text: str | None, kind: type) -> Any:
    """Stored JSON of this kind; rows by plain SQL may hold anything."""
    try:
        value: object = from_json(text or "null")
    except ValueError:
        return None
    return value if isinstance(value, kind) else None


def _text(value: object) -> str:
    return to_json(value).decode()


def revealed(value: object, written: Any) -> Any:
    """What pydantic has written of a value, with the secrets that it has masked."""
    if isinstance(value, (SecretStr, SecretBytes)):
        return _secret_text(value) if written == PYDANTIC_MASK else written
    if isinstance(written, dict):
        shape = cast("dict[str, Any]", written)
        if isinstance(shape.get("data"), dict) and "qualname" in shape:  # a tag names the class
            return {**shape, "data": revealed(value, shape["data"])}
        parts = _parts(value)
        return {name: revealed(parts.get(name), one) for name, one in shape.items()}
    if isinstance(written, list) and isinstance(value, Collection):
        items: list[Any] = written
        if len(items) == len(value):
            return [revealed(*pair) for pair in zip(value, items, strict=True)]
    return written


def _parts(value: object) -> Mapping[str, object]:
    """The values inside a value, by the keys under which pydantic writes them."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields.items()
        aliases = {name: field.serialization_alias or name for name, field in fields}
        own = {name: getattr(value, name) for name in aliases}
        return own | {alias: own[name] for name, alias in aliases.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): one for key, one in cast("Mapping[object, object]", value).items()}
    return {}


def _secret_text(secret: SecretStr | SecretBytes) -> str:
    value = secret.get_secret_value()
    return value if isinstance(value, str) else base64.urlsafe_b64encode(value).decode()
