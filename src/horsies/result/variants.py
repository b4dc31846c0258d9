"""Ok and Err: what operations that can fail return instead of raising."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar, final

from typing_extensions import TypeIs

T = TypeVar("T")
U = TypeVar("U")
E = TypeVar("E")
F = TypeVar("F")
T_co = TypeVar("T_co", covariant=True)
E_co = TypeVar("E_co", covariant=True)


class UnwrapError(ValueError):
    """The wrong variant was unwrapped; `result` is the value that was unwrapped."""

    def __init__(self, result: "Ok[object] | Err[object]", message: str) -> None:
        super().__init__(message)
        self.result = result


class Ok(Generic[T_co]):
    """The success variant of `Result`."""

    __match_args__ = ("ok_value",)
    __slots__ = ("_value",)
    _value: T_co

    def __init__(self, value: T_co) -> None:
        object.__setattr__(self, "_value", value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Ok is immutable: cannot set {name!r}")

    def __repr__(self) -> str:
        return f"Ok({self._value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ok) and bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash((True, self._value))

    def __iter__(self) -> Iterator[T_co]:
        yield self._value

    def __reduce__(self) -> tuple[type["Ok[T_co]"], tuple[T_co]]:
        return Ok, (self._value,)

    def __json__(self) -> dict[str, object]:
        return {"_tag": "Ok", "value": self._value}

    def is_ok(self) -> bool:
        return True

    def is_err(self) -> bool:
        return False

    def ok(self) -> T_co:
        return self._value

    def err(self) -> None:
        return None

    @property
    def ok_value(self) -> T_co:
        return self._value

    def unwrap(self) -> T_co:
        return self._value

    def expect(self, message: str) -> T_co:
        return self._value

    def unwrap_err(self) -> NoReturn:
        raise UnwrapError(self, f"unwrap_err() on {self!r}")

    def expect_err(self, message: str) -> NoReturn:
        raise UnwrapError(self, f"{message}: {self._value!r}")

    def unwrap_or(self, default: object) -> T_co:
        return self._value

    def unwrap_or_else(self, function: Callable[[Any], object]) -> T_co:
        return self._value

    def unwrap_or_raise(self, exception: Callable[[Any], BaseException]) -> T_co:
        return self._value

    def map(self, function: Callable[[T_co], U]) -> "Ok[U]":
        return Ok(function(self._value))

    async def map_async(self, function: Callable[[T_co], Awaitable[U]]) -> "Ok[U]":
        return Ok(await function(self._value))

    def map_err(self, function: Callable[[Any], object]) -> "Ok[T_co]":
        return self

    def map_or(self, default: object, function: Callable[[T_co], U]) -> U:
        return function(self._value)

    def map_or_else(self, default: Callable[[], object], function: Callable[[T_co], U]) -> U:
        return function(self._value)

    def and_then(self, function: Callable[[T_co], "Result[U, E]"]) -> "Result[U, E]":
        return function(self._value)

    async def and_then_async(
        self, function: Callable[[T_co], Awaitable["Result[U, E]"]]
    ) -> "Result[U, E]":
        return await function(self._value)

    def or_else(self, function: Callable[[Any], object]) -> "Ok[T_co]":
        return self

    def inspect(self, function: Callable[[T_co], object]) -> "Ok[T_co]":
        function(self._value)
        return self

    def inspect_err(self, function: Callable[[Any], object]) -> "Ok[T_co]":
        return self


@final
class Err(Generic[E_co]):
    """The error variant of `Result`."""

    __match_args__ = ("err_value",)
    __slots__ = ("_error",)
    _error: E_co

    def __init__(self, error: E_co) -> None:
        object.__setattr__(self, "_error", error)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Err is immutable: cannot set {name!r}")

    def __repr__(self) -> str:
        return f"Err({self._error!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Err) and bool(self._error == other._error)

    def __hash__(self) -> int:
        return hash((False, self._error))

    def __reduce__(self) -> tuple[type["Err[E_co]"], tuple[E_co]]:
        return Err, (self._error,)

    def __json__(self) -> dict[str, object]:
        error = self._error
        if isinstance(error, BaseException):
            described = {"exception_type": type(error).__name__, "message": str(error)}
            return {"_tag": "Err", "error": described}
        return {"_tag": "Err", "error": str(error)}

    def is_ok(self) -> bool:
        return False

    def is_err(self) -> bool:
        return True

    def ok(self) -> None:
        return None

    def err(self) -> E_co:
        return self._error

    @property
    def err_value(self) -> E_co:
        return self._error

    def unwrap(self) -> NoReturn:
        self._refuse("unwrap() on Err")

    def expect(self, message: str) -> NoReturn:
        self._refuse(message)

    def unwrap_err(self) -> E_co:
        return self._error

    def expect_err(self, message: str) -> E_co:
        return self._error

    def unwrap_or(self, default: U) -> U:
        return default

    def unwrap_or_else(self, function: Callable[[E_co], U]) -> U:
        return function(self._error)

    def unwrap_or_raise(self, exception: Callable[[E_co], BaseException]) -> NoReturn:
        raise exception(self._error)

    def map(self, function: Callable[[Any], object]) -> "Err[E_co]":
        return self

    async def map_async(self, function: Callable[[Any], object]) -> "Err[E_co]":
        return self

    def map_err(self, function: Callable[[E_co], F]) -> "Err[F]":
        return Err(function(self._error))

    def map_or(self, default: U, function: Callable[[Any], object]) -> U:
        return default

    def map_or_else(self, default: Callable[[], U], function: Callable[[Any], object]) -> U:
        return default()

    def and_then(self, function: Callable[[Any], object]) -> "Err[E_co]":
        return self

    async def and_then_async(self, function: Callable[[Any], object]) -> "Err[E_co]":
        return self

    def or_else(self, function: Callable[[E_co], "Result[T, F]"]) -> "Result[T, F]":
        return function(self._error)

    def inspect(self, function: Callable[[Any], object]) -> "Err[E_co]":
        return self

    def inspect_err(self, function: Callable[[E_co], object]) -> "Err[E_co]":
        function(self._error)
        return self

    def _refuse(self, message: str) -> NoReturn:
        cause: object = self._error
        # Our own errors tell their message by str(); anything else is shown as it is.
        is_ours = isinstance(getattr(cause, "message", None), str)
        error = UnwrapError(self, f"{message}: {cause}" if is_ours else f"{message}: {cause!r}")
        if not isinstance(cause, BaseException):
            cause = getattr(cause, "exception", None)
        if isinstance(cause, BaseException):
            raise error from cause
        raise error


Result: TypeAlias = Ok[T] | Err[E]


def is_ok(result: Result[T, E]) -> TypeIs[Ok[T]]:
    """Whether `result` is `Ok`; narrows its type."""
    return isinstance(result, Ok)


def is_err(result: Result[T, E]) -> TypeIs[Err[E]]:
    """Whether `result` is `Err`; narrows its type."""
    return isinstance(result, Err)
