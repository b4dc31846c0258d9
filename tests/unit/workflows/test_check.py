"""`check` on definitions and workflow builders (docs/contract/errors.md §4)."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from horsies import AppConfig, Horsies, WorkflowSpec
from support.flows import BROKER, double, load, nothing

HEAD = """
from horsies import *
from support.flows import load, double
from support.flows import app as other_app
"""


@pytest.fixture
def own() -> Horsies:
    return Horsies(AppConfig(broker=BROKER))


@pytest.fixture
def discover(own: Horsies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    before = set(sys.modules)

    def write(text: str, name: str = "flow_module.py", entry: str | None = None) -> list[str]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEAD + dedent(text))
        own.discover_tasks([entry or str(path)])
        return [error.code.value for error in own.check() if error.code]

    monkeypatch.syspath_prepend(str(tmp_path))
    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def codes_of(app: Horsies) -> list[str]:
    return [error.code.value for error in app.check() if error.code]


def test_a_definition_must_declare_its_key(discover: Any) -> None:
    assert discover(
        """
        class Base(WorkflowDefinition[int]):
            name = "base"
        class Fine(Base):
            definition_key = "tests.check.fine"
        """
    ) == ["HRS-016"]


def test_imported_definitions_of_others_are_not_judged(discover: Any) -> None:
    assert discover("from support.flows import Numbers\n") == []


def test_loaded_submodules_of_a_package_are_judged(discover: Any, tmp_path: Path) -> None:
    (tmp_path / "flow_package").mkdir()
    (tmp_path / "flow_package" / "__init__.py").write_text("from flow_package import inner\n")

    found = discover(
        "class Inner(WorkflowDefinition[int]): ...\n",
        name="flow_package/inner.py",
        entry="flow_package",
    )

    assert found == ["HRS-016"]


def test_a_builder_without_parameters_runs_once(own: Horsies) -> None:
    runs: list[bool] = []

    @own.workflow_builder()
    def build() -> WorkflowSpec[Any]:
        runs.append(own.are_sends_suppressed())
        return own.workflow("w", [load.node()()], definition_key="k")

    assert codes_of(own) == []
    assert runs == [True]
    (record,) = own.get_workflow_builders()
    assert (record.fn, record.cases) == (build, None)
    assert record.location is not None
    assert record.location.file == __file__


def test_a_builder_with_parameters_runs_once_per_case(own: Horsies) -> None:
    seen: list[int] = []

    @own.workflow_builder(cases=[{"n": 1}, {"n": 2}])
    def build(n: int) -> WorkflowSpec[Any]:
        seen.append(n)
        return own.workflow("w", [double.node()(n=n)], definition_key="k")

    assert codes_of(own) == []
    assert seen == [1, 2]


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        (None, ["HRS-027"]),
        (["n"], ["HRS-028"]),
        ([{"m": 1, "n": 1}], ["HRS-028"]),
        ([{}], ["HRS-028"]),
        ([{"n": 0}], ["HRS-029"]),
        ([{"n": 1}], ["HRS-029"]),
        ([{"n": 2}], ["HRS-020"]),
        ([{"n": 3}], ["HRS-013", "HRS-020"]),
        ([{"n": 0}, {"n": 2}], ["HRS-029", "HRS-020"]),
    ],
    ids=["cases", "no-dict", "unknown", "missing", "raises", "no-spec", "error", "errors", "all"],
)
def test_a_builder_or_case_that_fails_is_reported(
    own: Horsies, cases: Any, expected: list[str]
) -> None:
    @own.workflow_builder(cases=cases)
    def build(n: int) -> Any:
        if n == 1:
            return None
        any_double: Any = double
        options: dict[str, Any] = {"join": "most"} if n == 3 else {}
        node = any_double.node(**options)()
        return own.workflow("w", [node], definition_key="k") if n else 1 / n

    assert sorted(codes_of(own)) == sorted(expected)


def test_a_builder_with_var_kwargs_takes_any_case(own: Horsies) -> None:
    @own.workflow_builder(cases=[{"anything": 1}])
    def build(**options: Any) -> WorkflowSpec[Any]:
        return own.workflow("w", [nothing.node()()], definition_key="k")

    assert codes_of(own) == []
    assert build.__name__ == "build"


def test_an_undecorated_builder_is_reported(discover: Any) -> None:
    assert discover(
        """
        def build() -> WorkflowSpec[int]:
            raise NotImplementedError
        def bare() -> WorkflowSpec: ...
        def other() -> int: ...
        """
    ) == ["HRS-030", "HRS-030"]


def test_an_undecorated_builder_may_be_exempt(discover: Any) -> None:
    assert (
        discover(
            """
            def build() -> WorkflowSpec[int]:
                raise NotImplementedError
            build.__horsies_no_check__ = True
            """
        )
        == []
    )


def test_specs_made_while_importing_are_reported(discover: Any) -> None:
    assert discover("other_app.workflow('w', [double.node()()])\n") == ["HRS-020", "HRS-016"]


def test_a_phase_with_errors_ends_the_check(own: Horsies, discover: Any) -> None:
    @own.workflow_builder(cases=[{"n": 1}])
    def build() -> Any: ...

    assert discover("class Keyless(WorkflowDefinition[int]): ...\n") == ["HRS-016"]
    assert build() is None
