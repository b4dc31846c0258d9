"""Every statement of the seeds, and of Django's acceptance list, has a test that names it."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
STATEMENTS = {f"S{number}" for number in range(1, 160)}
# What later parts of the project bring; a number leaves this list with its first test.
LATER: dict[str, str] = {}
DJANGO_LINES = {f"E-{number:02}" for number in range(1, 41)}


def claimed_by(path: Path, marker: str) -> set[str]:
    """The numbers in the markers of this name in a test file."""
    return {
        argument.value
        for node in ast.walk(ast.parse(path.read_text(), str(path)))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == marker
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def test_every_statement_has_a_test() -> None:
    held = {number for path in TESTS.rglob("test_*.py") for number in claimed_by(path, "seed")}

    assert held <= STATEMENTS, "a marker names a statement that does not exist"
    assert sorted(STATEMENTS - held - set(LATER)) == []
    assert sorted(held & set(LATER)) == [], "tested by now: take it off the list"


def test_every_line_of_djangos_acceptance_list_has_a_test() -> None:
    files = (TESTS / "django").glob("test_*.py")
    held = {line for path in files for line in claimed_by(path, "acceptance")}

    assert sorted(DJANGO_LINES - held) == []
    assert sorted(held - DJANGO_LINES) == [], "a marker names a line that does not exist"
