"""Write the arguments of one function as JSON text, by the annotations of its parameters.

One adapter over a TypedDict handles all keyword arguments and one over a tuple handles all
positional ones, so that each needs a single call into pydantic.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, cast

from pydantic import GetCoreSchemaHandler, TypeAdapter
from pydantic_core import ValidationError, core_schema
from typing_extensions import TypedDict

from horsies.codec.annotated import (
    ANY,
    build_adapter,
    codec_for,
    describe,
    encode_checked,
    exact_type,
    rewrite,
    unwritable_path,
)
from horsies.codec.injected import is_injected_result, place_injected, read_injected_result
from horsies.codec.shapes import Json, SerializationError, dumps, loads
from horsies.result import Err, Ok, Result

# Any: type checkers accept only static types here, and these are built at runtime.
_make_typed_dict: Any = TypedDict
_tuple: Any = tuple
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ArgumentsError(SerializationError):
    """The arguments do not match the signature; the message names the parameter."""


def byte_count(text: str) -> int:
    """Return the size of a text in bytes; most texts are ASCII and need no encoding."""
    return len(text) if text.isascii() else len(text.encode())


class EncodedArguments(NamedTuple):
    """The texts of the columns args and kwargs; None if there are no such arguments."""

    args_json: str | None
    kwargs_json: str | None


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to check a call with a given number of positional arguments."""

    adapter: TypeAdapter[object] | None
    exact: tuple[type | None, ...]
    named: tuple[tuple[str, object], ...]
    taken: frozenset[str]
    required: frozenset[str]


class _Plans(dict[int, _Plan]):
    """Plans by the number of positional arguments, each made when it is first asked for."""

    def __init__(self, make: Callable[[int], _Plan]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, count: int) -> _Plan:
        plan = self[count] = self._make(count)
        return plan


class SignatureCodec:
    """Writes and reads the arguments of one function."""

    def __init__(self, function: Callable[..., object], annotations: Mapping[str, object]) -> None:
        self.signature = inspect.signature(function)
        self._annotations = annotations
        self._plans = _Plans(self._make_plan)

    def encode(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Result[EncodedArguments, ArgumentsError]:
        """Bind and check arguments as a call of the function would, then write them."""
        try:
            plan = self._bind(args, kwargs)
            args_json = self._encode_args(plan, args) if args else None
            kwargs_json = self._encode_kwargs(kwargs) if kwargs else None
            return Ok(EncodedArguments(args_json, kwargs_json))
        except ArgumentsError as error:
            return Err(error)
        except Exception as error:  # noqa: BLE001  # user code: validators and serializers
            return Err(_refusal(error))

    def decode(
        self, args_json: str | None, kwargs_json: str | None
    ) -> Result[tuple[tuple[object, ...], dict[str, object]], ArgumentsError]:
        """Read stored arguments, ready to be passed to the function."""
        try:
            args = self._decode_args(args_json) if args_json else ()
            kwargs = self._decode_kwargs(kwargs_json) if kwargs_json else {}
            self._bind(args, kwargs)
            return Ok((args, kwargs))
        except ArgumentsError as error:
            return Err(error)
        except Exception as error:  # noqa: BLE001  # user code: validators and constructors
            return Err(_refusal(error))

    def encode_some(self, kwargs: Mapping[str, object]) -> Result[str | None, ArgumentsError]:
        """Write some of the keyword arguments, and check that they can be read back."""
        try:
            text = self._encode_kwargs(dict(kwargs)) if kwargs else None
            if text is not None:
                self._decode_kwargs(text)
        except ArgumentsError as error:
            return Err(error)
        except Exception as error:  # noqa: BLE001  # user code: validators and serializers
            return Err(_refusal(error))
        return Ok(text)

    @property
    def names(self) -> Mapping[str, object]:
        """The parameters that can be given by name, with their annotations."""
        return self._fields

    @property
    def required_names(self) -> tuple[str, ...]:
        """The parameters without a default, in their order."""
        required = self._plans[0].required
        return tuple(name for name in self.signature.parameters if name in required)

    @property
    def takes_any_name(self) -> bool:
        """Whether the function accepts `**kwargs`."""
        return self._extra_name is not None

    def bind_problem(
        self, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> TypeError | None:
        """Why a call with these arguments would be refused."""
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            return error
        return None

    def largest(self, args: tuple[object, ...], kwargs: dict[str, object]) -> str:
        """The name of the argument that takes most of the stored text."""
        named = dict(zip(self._positional, args, strict=False)) | kwargs
        if surplus := args[len(self._positional) :]:
            named[self._rest_name or ""] = surplus
        sizes = {
            name: byte_count(codec_for(self._annotations.get(name, Any)).encode(value))
            for name, value in named.items()
        }
        return max(sizes, key=lambda name: sizes[name])

    def forget(self) -> None:
        """Read the annotations anew: more of them are known now."""
        self._plans.clear()
        for name in ("_fields", "_kwargs_adapter"):
            self.__dict__.pop(name, None)

    def _bind(self, args: tuple[object, ...], kwargs: dict[str, object]) -> _Plan:
        """Reject what the call itself would reject, without the cost of `Signature.bind`."""
        plan = self._plans[len(args)]
        if not kwargs and not plan.required:
            return plan
        if not (
            plan.required <= kwargs.keys()
            and plan.taken.isdisjoint(kwargs)
            and (self._extra_name is not None or kwargs.keys() <= self._fields.keys())
        ):
            try:
                self.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise ArgumentsError(str(error)) from None
        return plan

    def _encode_args(self, plan: _Plan, args: tuple[object, ...]) -> str:
        if tuple(map(type, args)) == plan.exact:
            return dumps(cast("Json", args))
        if plan.adapter is not None:
            try:
                return encode_checked(plan.adapter, args, plan.adapter.validate_python(args))
            except (ValidationError, SerializationError):
                pass  # retry one by one, to name the parameter
        paired = zip(plan.named, args, strict=True)
        texts = [_encode_one(name, annotation, arg) for (name, annotation), arg in paired]
        return f"[{','.join(texts)}]"

    def _encode_kwargs(self, kwargs: dict[str, object]) -> str:
        adapter = self._kwargs_adapter
        if adapter is not None:
            try:
                return encode_checked(adapter, kwargs, adapter.validate_python(kwargs))
            except (ValidationError, SerializationError):
                pass  # retry one by one, to name the parameter
        texts = [
            f"{dumps(name)}:{_encode_one(name, self._annotation(name), value)}"
            for name, value in kwargs.items()
        ]
        return f"{{{','.join(texts)}}}"

    def _decode_args(self, text: str) -> tuple[object, ...]:
        stored = loads(text)
        if not isinstance(stored, list):
            raise ArgumentsError("args is not a JSON array")
        plan = self._plans[len(stored)]
        if tuple(map(type, stored)) == plan.exact:
            return tuple(stored)
        if plan.adapter is not None and '"__' not in text:
            try:
                return cast("tuple[object, ...]", plan.adapter.validate_json(text))
            except ValidationError:
                pass  # retry one by one, to name the parameter
        paired = zip(plan.named, stored, strict=True)
        return tuple(_decode_one(name, annotation, shape) for (name, annotation), shape in paired)

    def _decode_kwargs(self, text: str) -> dict[str, object]:
        adapter = self._kwargs_adapter
        if adapter is not None and '"__' not in text:
            try:
                return cast("dict[str, object]", adapter.validate_json(text))
            except ValidationError:
                pass  # retry one by one, to name the parameter
        stored = loads(text)
        if not isinstance(stored, dict):
            raise ArgumentsError("kwargs is not a JSON object")
        return {
            name: _decode_one(name, self._annotation(name), shape)
            for name, shape in place_injected(stored, self._fields).items()
        }

    def _annotation(self, name: str) -> object:
        """Return the annotation of a keyword argument."""
        if name in self._fields:
            return self._fields[name]
        if self._extra_name is None:
            raise ArgumentsError(f"got an unexpected keyword argument {name!r}")
        return self._annotations.get(self._extra_name, Any)

    def _make_plan(self, count: int) -> _Plan:
        named = self._positional[:count]
        surplus = count - len(named)
        if surplus and self._rest_name is None:
            raise ArgumentsError(
                f"too many positional arguments: at most {len(self._positional)}, got {count}"
            )
        rest = () if self._rest_name is None else (self._rest_name,) * surplus
        annotated = tuple((name, self._annotations.get(name, Any)) for name in (*named, *rest))
        types = tuple(rewrite(annotation) for _, annotation in annotated)
        needed = {
            name
            for name, parameter in self.signature.parameters.items()
            if parameter.default is parameter.empty and parameter.kind in {*_BY_POSITION, *_BY_NAME}
        }
        return _Plan(
            adapter=build_adapter(_tuple[types]) if types else None,
            exact=tuple(exact_type(annotation) for _, annotation in annotated),
            named=annotated,
            taken=frozenset(named),
            required=frozenset(needed - set(named)),
        )

    @cached_property
    def _positional(self) -> tuple[str, ...]:
        parameters = self.signature.parameters.items()
        return tuple(name for name, parameter in parameters if parameter.kind in _BY_POSITION)

    @cached_property
    def _fields(self) -> dict[str, object]:
        parameters = self.signature.parameters.items()
        return {
            name: self._annotations.get(name, Any)
            for name, parameter in parameters
            if parameter.kind in _BY_NAME
        }

    @cached_property
    def _rest_name(self) -> str | None:
        return self._name_of(inspect.Parameter.VAR_POSITIONAL)

    @cached_property
    def _extra_name(self) -> str | None:
        return self._name_of(inspect.Parameter.VAR_KEYWORD)

    def _name_of(self, kind: object) -> str | None:
        parameters = self.signature.parameters.items()
        return next((name for name, parameter in parameters if parameter.kind is kind), None)

    @cached_property
    def _kwargs_adapter(self) -> TypeAdapter[object] | None:
        """One adapter for all keyword arguments; None with **kwargs, whose names are unknown."""
        if self._extra_name is not None:
            return None
        rewritten = {name: rewrite(annotation) for name, annotation in self._fields.items()}
        adapter = self._dict_adapter(rewritten)
        if adapter is None:
            usable = {
                name: ANY if build_adapter(annotation) is None else annotation
                for name, annotation in rewritten.items()
            }
            adapter = self._dict_adapter(usable)
        return adapter

    def _dict_adapter(self, fields: dict[str, object]) -> TypeAdapter[object] | None:
        arguments = _make_typed_dict("Arguments", fields, total=False)
        return build_adapter(Annotated[arguments, _NoUnknownNames()])


class _NoUnknownNames:
    """Forbids unknown keys at this level only; a config would also apply to nested dataclasses."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        schema = handler(source)
        inner = cast("core_schema.TypedDictSchema", handler.resolve_ref_schema(schema))
        inner["extra_behavior"] = "forbid"
        return schema


def _encode_one(name: str, annotation: object, value: object) -> str:
    try:
        return codec_for(annotation).encode(value)
    except SerializationError as error:
        raise ArgumentsError(f"parameter {name!r}: {_located(name, value, error)}") from error


def _located(name: str, value: object, error: SerializationError) -> str:
    """What is wrong with an argument, by its path: order.items[3].price."""
    if isinstance(error.__cause__, ValidationError):
        return describe(error.__cause__, root=name)
    path = unwritable_path(value)
    return f"{name}{path}: {error}" if path else str(error)


def _decode_one(name: str, annotation: object, shape: Json) -> object:
    if is_injected_result(shape):
        return read_injected_result(shape, annotation)
    try:
        return codec_for(annotation).from_shape(shape)
    except SerializationError as error:
        raise ArgumentsError(f"parameter {name!r}: {error}") from error


def _refusal(error: Exception) -> ArgumentsError:
    text = describe(error) if isinstance(error, ValidationError) else str(error)
    refusal = ArgumentsError(f"{type(error).__name__}: {text}")
    refusal.__cause__ = error
    return refusal
