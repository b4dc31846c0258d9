"""Calls of the stored functions, made from their own signatures.

Every argument travels by name and is cast to its declared type; a sequence becomes an array of it.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple, TypeVar, cast

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
    array_types: dict[str, str]  # parameter -> type of its elements


def call(function: str, row: type[Row], **arguments: object) -> Statement[Row]:
    """The statement that calls `horsies_<function>`; `row` is the shape of what it returns."""
    signature = _signatures()[function]
    parameters = {
        name: _array(signature.array_types[name], cast("Iterable[object]", value))
        if name in signature.array_types
        else value
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
        arrays = {
            parameter: kind.removesuffix("[]")
            for parameter, kind in parameters.items()
            if kind.endswith("[]")
        }
        # Names and types from our own files; values always travel as parameters.
        found[name] = _Function(f"select * from horsies_{name}({arguments})", arrays)  # noqa: S608
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


def _array(element_type: str, values: Iterable[object]) -> str:
    """An array literal: for a batch far cheaper than the driver's dumping by element."""
    if element_type in _UNQUOTED_TYPES:
        return "{" + ",".join(["NULL" if v is None else str(v) for v in values]) + "}"
    return "{" + ",".join(["NULL" if v is None else _quoted(str(v)) for v in values]) + "}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
