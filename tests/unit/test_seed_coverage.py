"""Every statement of the seeds has a test that says it holds it."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
STATEMENTS = {f"S{number}" for number in range(1, 160)}
# What later parts of the project bring; a number leaves this list with its first test.
LATER: dict[str, str] = {}


def claimed_by(path: Path) -> set[str]:
    """The numbers in the `seed` markers of a test file."""
    return {
        argument.value
        for node in ast.walk(ast.parse(path.read_text(), str(path)))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "seed"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def test_every_statement_has_a_test() -> None:
    held = {number for path in TESTS.rglob("test_*.py") for number in claimed_by(path)}

    assert held <= STATEMENTS, "a marker names a statement that does not exist"
    assert sorted(STATEMENTS - held - set(LATER)) == []
    assert sorted(held & set(LATER)) == [], "tested by now: take it off the list"
