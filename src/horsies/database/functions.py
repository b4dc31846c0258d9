"""Calls of the stored functions and procedures, made from their own signatures.

Every argument travels by name and is cast to its declared type. A sequence becomes an array, and a
value of dictionaries, lists and dataclasses becomes `jsonb`, where the function declares one. A
procedure answers one row of its `inout` parameters; those that are not given are null.
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
    r"create or replace (function|procedure) horsies_(\w+)\(([^)]*)\)\s*(?:returns|language)",
    re.IGNORECASE,
)
# Elements of these types never hold a character that an array literal gives a meaning to.
_UNQUOTED_TYPES = {"integer", "bigint", "boolean", "double precision"}


class _Function(NamedTuple):
    sql: str
    outputs: dict[str, None]  # the `inout` parameters
    encoders: dict[str, Callable[[Any], str]]  # by parameter, where the driver's own will not do


def call(function: str, row: Callable[..., Row], **arguments: Any) -> Statement[Row]:
    """The statement that calls `horsies_<function>`; `row` makes a row of what it returns."""
    signature = _signatures()[function]
    parameters = {
        name: signature.encoders[name](value) if name in signature.encoders else value
        for name, value in arguments.items()
    }
    return Statement(signature.sql, {**signature.outputs, **parameters}, row)


@cache
def parameters_of(function: str) -> dict[str, str]:
    """The parameters of `horsies_<function>` and their types."""
    return next(found.parameters for found in _declared() if found.name == function)


@cache
def _signatures() -> dict[str, _Function]:
    found: dict[str, _Function] = {}
    for kind, name, parameters, outputs in _declared():
        arguments = ", ".join(f"{p} => cast(%({p})s as {of})" for p, of in parameters.items())
        encoders: dict[str, Callable[[Any], str]] = {}
        for parameter, of in parameters.items():
            if of.endswith("[]"):
                encoders[parameter] = partial(_array, of.removesuffix("[]"))
            elif of == "jsonb":
                encoders[parameter] = _json
        # Names and types from our own files; values always travel as parameters.
        verb = "call" if kind == "procedure" else "select * from"
        sql = f"{verb} horsies_{name}({arguments})"
        found[name] = _Function(sql, dict.fromkeys(outputs), encoders)
    return found


class _Declaration(NamedTuple):
    kind: str
    name: str
    parameters: dict[str, str]
    outputs: list[str]


@cache
def _declared() -> tuple[_Declaration, ...]:
    declared: list[_Declaration] = []
    for kind, name, text in _SIGNATURE.findall(functions_sql()):
        words = [part.split() for part in text.split(",") if part.strip()]
        outputs = [part[1] for part in words if part[0] == "inout"]
        named = [part[1:] if part[0] == "inout" else part for part in words]
        parameters = {part[0]: " ".join(part[1:]) for part in named}
        declared.append(_Declaration(kind, name, parameters, outputs))
    return tuple(declared)


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
