"""Reads the .sql files of this package: functions and migrations whole, queries by name."""

import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_ROOT = files("horsies.database") / "sql"
_NAMED = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class Migration(NamedTuple):
    version: int
    name: str
    sql: str


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations in order of their number."""
    found: list[Migration] = []
    for file in (_ROOT / "migrations").iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        found.append(Migration(int(number), name, file.read_text("utf-8")))
    return tuple(sorted(found))


def functions_sql() -> str:
    """Every function, `create or replace`, package by package; not kept: 400 kB, read seldom."""
    packages = sorted((_ROOT / "functions").iterdir(), key=lambda folder: folder.name)
    return "\n".join(
        file.read_text("utf-8")
        for package in packages
        for file in sorted(package.iterdir(), key=lambda file: file.name)
    )


@cache
def functions_digest() -> str:
    """Tells whether the stored functions are those of this release."""
    return hashlib.sha256(functions_sql().encode()).hexdigest()[:16]


@cache
def query(file: str, name: str) -> str:
    """The statement under `-- name: <name>` in `queries/<file>.sql`."""
    parts = _NAMED.split((_ROOT / "queries" / f"{file}.sql").read_text("utf-8"))
    statements = dict(zip(parts[1::2], parts[2::2], strict=True))
    return statements[name].strip().removesuffix(";")
