"""Write annotated values as JSON text, with one pydantic TypeAdapter per annotation.

The annotation is rewritten first: where it leaves the type open (Any, bare containers,
subclasses), the value is written as a tagged shape instead of what pydantic would guess.
"""

import collections.abc
import dataclasses
import inspect
import re
import types
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainSerializer,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    WrapSerializer,
)
from pydantic.errors import (
    PydanticSchemaGenerationError,
    PydanticUndefinedAnnotation,
    PydanticUserError,
)
from pydantic_core import (
    PydanticSerializationError,
    PydanticSerializationUnexpectedValue,
    ValidationError,
)

from horsies.codec.secrecy import PYDANTIC_MASK, revealed
from horsies.codec.shapes import (
    Json,
    SerializationError,
    TagCount,
    class_shape,
    count_tags,
    dumps,
    has_tag,
    loads,
    refuse_constants,
    resolve_tags,
    to_shape,
)
from horsies.result import TaskResult

# `refuse_constants` rejects NaN afterwards: by default, pydantic would silently write null.
_CONFIG = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")
# Pydantic's reader fails at about this depth, but its writer does not.
_UNREADABLE_DEPTH = 150
_CLASS_IN_MESSAGE = re.compile(r"schema for (?:<class ')?(.+?)(?:'>)?\. Set")
_new_type: Any = NewType  # Any: type checkers accept only static types here


def _write_shape(value: object, info: SerializationInfo) -> Json:
    return to_shape(value, TagCount() if info.context is None else info.context)


def _write_container(cls: type) -> PlainSerializer:
    # PydanticSerializationUnexpectedValue, here and in _write_class, makes a union try its next
    # member.
    def write(value: object, info: SerializationInfo) -> Json:
        if not isinstance(value, cls):
            raise PydanticSerializationUnexpectedValue(f"expected {cls.__name__}")
        return _write_shape(value, info)

    return PlainSerializer(write)


def _write_class(cls: type) -> WrapSerializer:
    def write(
        value: object, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> object:
        if type(value) is cls:
            return handler(value)
        if not isinstance(value, cls):
            raise PydanticSerializationUnexpectedValue(f"expected {cls.__name__}")
        tags: TagCount = TagCount() if info.context is None else info.context
        return class_shape(value, tags)

    return WrapSerializer(write)


ANY = Annotated[Any, PlainSerializer(_write_shape)]
_RESULT = Annotated[TaskResult[Any, Any], PlainSerializer(_write_shape)]
_OPEN_TYPES: tuple[object, ...] = (Any, object, inspect.Parameter.empty)
_UNIONS: tuple[object, ...] = (Union, types.UnionType)
_EXACT_TYPES = (int, str, bool, type(None))
_BARE_CONTAINERS = (list, tuple, dict)
_ITEM_CONTAINERS: tuple[object, ...] = (
    list,
    set,
    frozenset,
    tuple,
    dict,
    collections.deque,
    collections.abc.Sequence,
    collections.abc.Mapping,
    collections.abc.MutableMapping,
    collections.abc.MutableSequence,
)


def rewrite(annotation: object) -> object:
    """Replace open types by tagged shapes; keep what pydantic can handle."""
    if annotation in _OPEN_TYPES or isinstance(annotation, str):
        return ANY
    if isinstance(annotation, TypeVar):
        return ANY if annotation.__bound__ is None else rewrite(annotation.__bound__)
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return _rewrite_class(annotation)
    return _rewrite_generic(annotation, get_origin(annotation), get_args(annotation))


def _rewrite_class(cls: type) -> object:
    if cls is TaskResult:
        return _RESULT
    if cls in _BARE_CONTAINERS:
        return Annotated[cls, _write_container(cls)]
    if cls in (set, frozenset):
        return cast("Any", cls)[ANY]
    if cls in (collections.abc.Sequence, collections.abc.Mapping):
        return ANY
    if issubclass(cls, BaseModel) or dataclasses.is_dataclass(cls):
        return Annotated[cls, _write_class(cls)]
    return cls


def _rewrite_generic(  # noqa: PLR0911  # one return per kind of annotation
    annotation: object, origin: object, arguments: tuple[object, ...]
) -> object:
    if origin is TaskResult:
        return _RESULT
    if origin is Annotated:
        base, *metadata = arguments
        return Annotated[(rewrite(base), *metadata)]
    if origin in _UNIONS:
        return Union[tuple(rewrite(argument) for argument in arguments)]  # noqa: UP007  # built at runtime
    if origin is Literal or origin is None:
        return annotation
    if origin is dict and arguments[0] in _OPEN_TYPES:
        return Annotated[annotation, _write_container(dict)]
    if origin in (collections.abc.Iterable, collections.abc.Collection):
        return list[rewrite(arguments[0])]  # type: ignore[misc]  # pydantic would return a one-time iterator
    if origin in _ITEM_CONTAINERS:
        return cast("Any", origin)[tuple(a if a is Ellipsis else rewrite(a) for a in arguments)]
    if dataclasses.is_dataclass(origin):
        return Annotated[annotation, _write_class(cast("type", origin))]
    return annotation


def build_adapter(annotation: object) -> TypeAdapter[object] | None:
    """Build the adapter for a rewritten annotation; None if pydantic has no schema for it."""
    try:
        # Wrapped in a NewType, because pydantic accepts no config for a model or a dataclass.
        adapter = TypeAdapter[object](_new_type("Value", annotation), config=_CONFIG)
    except (PydanticSchemaGenerationError, PydanticUserError):
        return None
    return adapter if adapter.pydantic_complete else None


def schema_problem(annotation: object) -> str | None:
    """Why values of an annotation can be neither checked nor written; None if they can."""
    try:
        adapter = TypeAdapter[object](_new_type("Value", rewrite(annotation)), config=_CONFIG)
        if not adapter.pydantic_complete:
            adapter.rebuild(raise_errors=True)
    except PydanticUndefinedAnnotation as error:
        return f"it refers to {error.name}, which is not defined where its class is"
    except PydanticSchemaGenerationError as error:
        found = _CLASS_IN_MESSAGE.search(str(error))
        return f"{found[1] if found else annotation} has no schema"
    except PydanticUserError as error:
        if error.code == "typed-dict-version":
            return "typing.TypedDict needs Python 3.12: use typing_extensions.TypedDict"
        return str(error).partition("\n")[0]
    return None


@lru_cache(maxsize=1)
def _shape_adapter() -> TypeAdapter[object]:
    return TypeAdapter(ANY, config=_CONFIG)


def exact_type(annotation: object) -> type | None:
    """Return the annotation if it is a class whose exact instances are always valid, plain JSON.

    Checking the type of such a value costs a tenth of a validation.
    """
    if annotation is None:
        return type(None)
    if isinstance(annotation, type) and annotation in _EXACT_TYPES:
        return annotation
    return None


class TypeCodec:
    """Writes and reads values of one annotation."""

    __slots__ = ("adapter", "annotation", "exact")

    def __init__(self, annotation: object) -> None:
        self.annotation = annotation
        self.exact = exact_type(annotation)
        self.adapter = build_adapter(rewrite(annotation)) or _shape_adapter()

    def encode(self, value: object) -> str:
        """Validate and write a value; raise SerializationError."""
        return encode_checked(self.adapter, value, validate(self.adapter, value))

    def encode_unchecked(self, value: object) -> str:
        """Write a value that was validated before."""
        if type(value) is self.exact:
            return dumps(cast("Json", value))
        return encode_checked(self.adapter, value, value)

    def decode(self, text: str) -> object:
        """Read a value; raise SerializationError."""
        if '"__' not in text:
            return decode_plain(self.adapter, text)
        return self.from_shape(loads(text))

    def from_shape(self, shape: Json) -> object:
        """Read a value from parsed JSON, which may contain tags."""
        if not has_tag(shape):
            return decode_plain(self.adapter, dumps(shape))
        try:
            resolved = resolve_tags(shape)
        except SerializationError:
            raise
        except Exception as error:  # user code: constructors of tagged classes
            raise SerializationError(f"tagged value does not fit its class: {error}") from error
        return validate(self.adapter, resolved)


def validate(adapter: TypeAdapter[object], value: object) -> object:
    """Validate a Python value against the annotation."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise SerializationError(describe(error)) from error


def decode_plain(adapter: TypeAdapter[object], text: str) -> object:
    """Read text without tags."""
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        raise SerializationError(describe(error)) from error


def encode_checked(adapter: TypeAdapter[object], value: object, validated: object) -> str:
    """Write `value`, or its form after validation if pydantic cannot write the original."""
    tags, written = TagCount(), value
    try:
        text = adapter.dump_json(value, warnings="error", context=tags).decode()
    except PydanticSerializationError:
        tags, written = TagCount(), validated
        text = _encode_validated(adapter, validated, tags)
    if PYDANTIC_MASK in text:
        text = dumps(revealed(written, loads(text)))
    refuse_constants(text)
    if text.count("[") + text.count("{") > _UNREADABLE_DEPTH:
        _refuse_depth(text)
    if '"__' in text and count_tags(loads(text)) != tags.written:
        raise SerializationError("a mapping holds a key reserved for tags")
    return text


def _refuse_depth(text: str) -> None:
    try:
        loads(f"[[{text}]]")  # as deep as it will be in its row
    except SerializationError:
        raise SerializationError("nested too deeply to be read back") from None


def _encode_validated(adapter: TypeAdapter[object], validated: object, tags: TagCount) -> str:
    """Write a value that is valid only after coercion or that makes pydantic warn."""
    try:
        text = adapter.dump_json(validated, warnings="none", context=tags).decode()
        if '"__' not in text:
            adapter.validate_json(text)
    except (PydanticSerializationError, ValidationError) as error:
        # Pydantic wraps the errors of our serializers in its own message, sometimes repeatedly.
        reason = str(error).rpartition("`: SerializationError: ")[2]
        raise SerializationError(f"cannot be written as JSON: {reason}") from error
    return text


def describe(error: ValidationError, *, root: str = "") -> str:
    """Describe in one line what is invalid, and where: items[3].price."""
    first = error.errors(include_url=False, include_context=False)[0]
    if not first["loc"]:
        return str(first["msg"])
    place = path_text(first["loc"])
    return f"{root}{place if root else place.removeprefix('.')}: {first['msg']}"


def path_text(parts: Iterable[object]) -> str:
    """A path as people write it: .items[3].price."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def unwritable_path(value: object) -> str:
    """Where inside a value something cannot be written as JSON; "" if it is the value itself."""
    # A class that only an annotation can write is not the culprit while a value inside one is.
    inside = _unwritable_inside(value, set(), 0)
    return path_text(_unwritable_class(value) if inside is None else inside)


def _unwritable_inside(value: object, looked_at: set[int], depth: int) -> list[object] | None:
    """The way to the first value that cannot be written, whatever holds it; `None` without one."""
    items = _items(value)
    if not items:
        return None if _is_writable(value) else []
    if id(value) in looked_at or depth > _UNREADABLE_DEPTH:
        return None
    looked_at.add(id(value))  # once: values may hold each other, and themselves
    for part, item in items:
        found = _unwritable_inside(item, looked_at, depth + 1)
        if found is not None:
            return [part, *found]
    has_keys = isinstance(value, collections.abc.Mapping)
    return [] if has_keys and not _is_writable({key: 0 for key, _ in items}) else None


def _unwritable_class(value: object) -> list[object]:
    """The way to the innermost value that cannot be written as it is."""
    parts: list[object] = []
    looked_at: set[int] = set()
    while True:
        looked_at.add(id(value))  # a value that holds itself is not looked for inside itself
        items = [pair for pair in _items(value) if id(pair[1]) not in looked_at]
        inside = next(((part, item) for part, item in items if not _is_writable(item)), None)
        if inside is None or len(parts) > _UNREADABLE_DEPTH:
            return parts
        parts.append(inside[0])
        value = inside[1]


def _items(value: object) -> Sequence[tuple[object, object]]:
    if isinstance(value, BaseModel):
        return [(name, getattr(value, name)) for name in type(value).model_fields]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, collections.abc.Mapping):
        return list(cast("collections.abc.Mapping[object, object]", value).items())
    if isinstance(value, (list, tuple)):
        return list(enumerate(cast("list[object]", value)))
    return ()


def _is_writable(value: object) -> bool:
    try:
        refuse_constants(dumps(to_shape(value, TagCount())))
    except Exception:  # noqa: BLE001  # user code: serializers
        return False
    return True


def codec_for(annotation: object) -> TypeCodec:
    """Return the cached codec of an annotation."""
    try:
        return _cached_codec(annotation)
    except TypeError:  # the annotation is unhashable
        return TypeCodec(annotation)


@lru_cache(maxsize=1024)
def _cached_codec(annotation: object) -> TypeCodec:
    return TypeCodec(annotation)
