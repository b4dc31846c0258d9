"""Calls of the stored functions, made from their own signatures: every argument by name.

Cast to its declared type.
"""

import re
from functools import cache

from horsies.database.sql_files import functions_sql

_SIGNATURE = re.compile(
    r"create or replace function horsies_(\w+)\(([^)]*)\)\s*returns", re.IGNORECASE
)


@cache
def _calls() -> dict[str, str]:
    calls: dict[str, str] = {}
    for name, parameters in _SIGNATURE.findall(functions_sql()):
        arguments: list[str] = []
        for parameter in filter(None, (part.strip() for part in parameters.split(","))):
            argument, _, kind = parameter.partition(" ")
            arguments.append(f"{argument} => cast(%({argument})s as {kind.strip()})")
        # Names and types from our own files; values always travel as parameters.
        calls[name] = f"select * from horsies_{name}({', '.join(arguments)})"  # noqa: S608
    return calls


def call_sql(function: str) -> str:
    """The statement that calls `horsies_<function>` with `%(name)s` parameters."""
    return _calls()[function]
