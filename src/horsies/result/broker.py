"""What methods of the broker return: a value, or the reason why there is none."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from horsies.codes import BrokerErrorCode
from horsies.result.variants import Ok, Result

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
