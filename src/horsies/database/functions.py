"""Calls of the stored functions, made from their own signatures.

Every argument travels by name and is cast to its declared type. A sequence becomes an array, and a
value of dictionaries, lists and dataclasses becomes `jsonb`, where the function declares one.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from pydantic_core import to_json

from horsies.database.sql_files import functions_sql
from horsies.database.statement import Statement

Row = TypeVar("Row")

_SIGNATURE = re.compile(
    r"create or replace function horsies_(\w+)\(([^)]*)\)\s*returns", re.IGNORECASE
)
# Elements of these types never hold a character that an array literal gives a meaning to.
_UNQUOTED_TYPES = {"integer", "bigint", "boolean", "double precision"}


class _Function(NamedTuple):
    sql: str
    encoders: dict[str, Callable[[Any], str]]  # by parameter, where the driver's own will not do


def call(function: str, row: Callable[..., Row], **arguments: Any) -> Statement[Row]:
    """The statement that calls `horsies_<function>`; `row` makes a row of what it returns."""
    signature = _signatures()[function]
    parameters = {
        name: signature.encoders[name](value) if name in signature.encoders else value
        for name, value in arguments.items()
    }
    return Statement(signature.sql, parameters, row)


@cache
def parameters_of(function: str) -> dict[str, str]:
    """The parameters of `horsies_<function>` and their types."""
    return dict(_parameters())[function]


@cache
def _signatures() -> dict[str, _Function]:
    found: dict[str, _Function] = {}
    for name, parameters in _parameters():
        arguments = ", ".join(f"{p} => cast(%({p})s as {kind})" for p, kind in parameters.items())
        encoders: dict[str, Callable[[Any], str]] = {}
        for parameter, kind in parameters.items():
            if kind.endswith("[]"):
                encoders[parameter] = partial(_array, kind.removesuffix("[]"))
            elif kind == "jsonb":
                encoders[parameter] = _json
        # Names and types from our own files; values always travel as parameters.
        found[name] = _Function(f"select * from horsies_{name}({arguments})", encoders)  # noqa: S608
    return found


@cache
def _parameters() -> tuple[tuple[str, dict[str, str]], ...]:
    return tuple(
        (
            name,
            {
                part.split()[0]: " ".join(part.split()[1:])
                for part in text.split(",")
                if part.strip()
            },
        )
        for name, text in _SIGNATURE.findall(functions_sql())
    )


def _json(value: object) -> str:
    return to_json(value).decode()


def _array(element_type: str, values: Iterable[object]) -> str:
    """An array literal: for a batch far cheaper than the driver's dumping by element."""
    if element_type in _UNQUOTED_TYPES:
        return "{" + ",".join(["NULL" if v is None else str(v) for v in values]) + "}"
    return "{" + ",".join(["NULL" if v is None else _quoted(str(v)) for v in values]) + "}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
