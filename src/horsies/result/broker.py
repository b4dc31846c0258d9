"""What methods of the broker return: a value, or the reason why there is none."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from horsies.codes import BrokerErrorCode
from horsies.result.variants import Err, Ok, Result

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BrokerOperationError:
    code: BrokerErrorCode
    message: str
    retryable: bool
    exception: BaseException | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


BrokerResult: TypeAlias = Result[T, BrokerOperationError]


class Cancellation(StrEnum):
    """What `cancel()` found."""

    WAITING = "waiting"  # it is cancelled now
    RUNNING = "running"  # its worker is asked to end it, if `running=True` was given
    ENDED = "ended"
    UNKNOWN = "unknown"  # there is no such task
    IN_WORKFLOW = "in workflow"  # only its workflow can be cancelled


class CancelOk(Ok[bool]):
    """Whether a task was cancelled, or its worker asked to end it; `found` says how it stood."""

    __slots__ = ("found",)
    found: Cancellation

    def __init__(self, value: bool, found: Cancellation) -> None:
        super().__init__(value)
        object.__setattr__(self, "found", found)

    def __repr__(self) -> str:
        return f"Ok({self.ok_value}, found={self.found.value!r})"

    def __reduce__(self) -> Any:
        return CancelOk, (self.ok_value, self.found)


CancelResult: TypeAlias = CancelOk | Err[BrokerOperationError]


class TransparentOk(Ok[T]):
    """An `Ok` that can also be used as the list or number it holds."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        value: Any = self.ok_value
        return iter(value) if isinstance(value, list) else iter((value,))

    def __len__(self) -> int:
        value: Any = self.ok_value
        return len(value)

    def __bool__(self) -> bool:
        return bool(self.ok_value)

    def __getitem__(self, index: Any) -> Any:
        value: Any = self.ok_value
        return value[index]

    def __int__(self) -> int:
        value: Any = self.ok_value
        return int(value)

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Ok):
            return bool(self.ok_value == other.ok_value)
        return bool(self.ok_value == other)

    def __hash__(self) -> int:
        return hash(("Ok", str(self.ok_value)))

    def __lt__(self, other: Any) -> bool:
        return bool(self.ok_value < other)

    def __le__(self, other: Any) -> bool:
        return bool(self.ok_value <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.ok_value > other)

    def __ge__(self, other: Any) -> bool:
        return bool(self.ok_value >= other)

    def __str__(self) -> str:
        return str(self.ok_value)

    def __format__(self, spec: str) -> str:
        return format(self.ok_value, spec)
