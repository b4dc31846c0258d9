"""Objects that a spec takes frozen copies of, and the copies of the values they hold."""

import copy
import dataclasses
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, cast

from pydantic import BaseModel

from horsies.result import TaskResult


class Freezable:
    """Can be changed until it is frozen; the frozen copies in a spec never change."""

    def __setattr__(self, name: str, value: object) -> None:
        self._refuse_if_frozen(f"cannot set {name!r}")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse_if_frozen(f"cannot delete {name!r}")
        object.__delattr__(self, name)

    def _refuse_if_frozen(self, action: str) -> None:
        if is_frozen(self):
            raise AttributeError(f"frozen {type(self).__name__}: {action}")


def is_frozen(item: Freezable) -> bool:
    """Whether an object belongs to a spec."""
    return "_is_frozen" in vars(item)


def freeze(item: Freezable, **changes: object) -> None:
    """Set the last attributes of an object, then let nobody set any."""
    vars(item).update(changes)
    vars(item)["_is_frozen"] = True


def thawed_copy(item: Freezable) -> Any:
    """Copy an object without what it refers to; the copy can be changed."""
    made = object.__new__(type(item))
    vars(made).update(vars(item))
    vars(made).pop("_is_frozen", None)
    return made


def frozen_value(value: object) -> object:
    """Copy a value so that later changes of the original do not show; nest only read-only ones."""
    if isinstance(value, (str, int, float, bool, bytes, type(None))):
        return value
    if isinstance(value, Mapping):
        return frozen_mapping(cast("Mapping[Any, object]", value))
    if isinstance(value, (list, tuple)):
        return tuple(frozen_value(item) for item in cast("list[object]", value))
    if isinstance(value, AbstractSet):
        return frozenset(cast("AbstractSet[object]", value))
    is_instance = dataclasses.is_dataclass(value) and not isinstance(value, type)
    if isinstance(value, (BaseModel, TaskResult)) or is_instance:
        return copy.deepcopy(value)
    return value


def frozen_mapping(mapping: Mapping[Any, object]) -> Mapping[Any, object]:
    """Copy a mapping and its values into a read-only one."""
    return MappingProxyType({key: frozen_value(item) for key, item in mapping.items()})
