"""Values as JSON for programs and for the clipboard."""

import json
from typing import Any

from pydantic_core import to_jsonable_python


def to_json(value: object) -> str:
    """Named tuples and dataclasses as objects, instants as ISO text."""
    return json.dumps(to_jsonable_python(_plain(value), fallback=str), indent=2)


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(one) for name, one in value._asdict().items()}
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value
