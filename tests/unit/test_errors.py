"""Startup errors: codes, places, rendering."""

import re
import sys
from pathlib import Path

import pytest

from horsies.codes import ErrorCode
from horsies.errors import (
    ConfigurationError,
    DuplicateTaskNameError,
    HorsiesError,
    MultipleValidationErrors,
    NotRegistered,
    RegistryError,
    SourceLocation,
    TaskDefinitionError,
    ValidationReport,
)

NOWHERE = SourceLocation("no/such/file.py", 3)


@pytest.fixture
def flows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceLocation:
    (tmp_path / "flows.py").write_text('import x\n\n    broken = app.workflow(name="x")  \n')
    monkeypatch.chdir(tmp_path)
    return SourceLocation("flows.py", 3)


def test_full_rendering_is_compiler_style(flows: SourceLocation) -> None:
    error = HorsiesError(
        "no root task",
        ErrorCode.WORKFLOW_NO_ROOT_TASKS,
        flows,
        ["first\ncontinued", "second"],
        "remove the cycle\nor add a task",
    )

    assert error.format_rust_style(use_colors=False).splitlines() == [
        "",
        "error[HRS-005]: no root task",
        "  --> flows.py:3",
        "     |",
        '    3|     broken = app.workflow(name="x")  ',
        "     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        "   = note: first",
        "          continued",
        "   = note: second",
        "",
        "   = help:",
        "        remove the cycle",
        "        or add a task",
    ]


def test_columns_limit_the_underline(flows: SourceLocation) -> None:
    location = SourceLocation(flows.file, 3, column=14, end_column=17)

    rendered = HorsiesError("m", location=location).format_rust_style(use_colors=False)

    assert "  --> flows.py:3:14\n" in rendered
    assert rendered.endswith("     | " + " " * 13 + "^^^")


def test_rendering_without_code_and_readable_source_is_short() -> None:
    assert str(HorsiesError("just this", location=NOWHERE)) == (
        "\nerror: just this\n  --> no/such/file.py:3"
    )


def test_report_closes_with_the_number_of_errors() -> None:
    report = ValidationReport("config")
    assert str(report) == "\nerror: aborting due to 0 previous errors"

    report.add(HorsiesError("one", location=NOWHERE))

    assert report.has_errors()
    assert str(report).endswith("error: aborting due to 1 previous errors")


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_report_gives_nothing_the_error_itself_or_all(count: int) -> None:
    errors = [HorsiesError(f"e{number}", location=NOWHERE) for number in range(count)]
    report = ValidationReport("config", list(errors))

    found = report.to_error()

    if count < 2:
        assert found is (errors[0] if errors else None)
    else:
        assert isinstance(found, MultipleValidationErrors)
        assert isinstance(found, ValueError)
        assert found.report.errors == errors
        assert found.message == f"aborting due to {count} previous errors"
        assert all(f"error: e{number}" in str(found) for number in range(count))


@pytest.mark.parametrize(
    ("environment", "is_terminal", "expected"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": "1", "HORSIES_FORCE_COLOR": "yes"}, False, True),
        ({"HORSIES_FORCE_COLOR": "0"}, False, False),
    ],
)
def test_colour_follows_terminal_and_environment(
    environment: dict[str, str],
    is_terminal: bool,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "HORSIES_FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    error = HorsiesError("m", location=NOWHERE)

    assert ("\x1b[" in error.format_rust_style()) is expected
    assert "\x1b[" not in str(error)


def test_the_place_is_the_users_line_by_default() -> None:
    error = HorsiesError("m")

    assert error.location is not None
    assert error.location.file == __file__
    assert "HorsiesError" in (error.location.get_source_line() or "")


def test_with_methods_return_the_error() -> None:
    error = ConfigurationError("m")
    frame = sys._getframe()

    assert error.with_note("n").with_help("h").with_location_from_frame(frame) is error
    assert (error.notes, error.help_text) == (["n"], "h")
    assert error.location is not None
    assert error.location.file == __file__
    assert error.with_location(None).location is None


def test_arguments_of_the_exception_are_the_message() -> None:
    error = TaskDefinitionError("m", ErrorCode.TASK_INVALID_OPTIONS)

    assert error.args == ("m",)
    assert isinstance(error, TypeError)
    assert isinstance(ConfigurationError("m"), ValueError)


def test_registry_errors_carry_the_name() -> None:
    unknown = NotRegistered("a")
    taken = DuplicateTaskNameError("b")

    assert isinstance(unknown, KeyError)
    assert isinstance(unknown, RegistryError)
    assert (unknown.task_name, unknown.code) == ("a", ErrorCode.TASK_NOT_REGISTERED)
    assert (taken.task_name, taken.code) == ("b", ErrorCode.TASK_DUPLICATE_NAME)
    assert "error[HRS-300]" in str(unknown)


def test_every_code_is_in_its_range() -> None:
    values = [code.value for code in ErrorCode]

    assert len(values) == len(set(values)) == 52
    assert all(re.fullmatch(r"HRS-[0-3]\d\d", value) for value in values)
    assert ErrorCode["WORKFLOW_EXCESS_POSITIONAL_ARGS"] is ErrorCode("HRS-026")


def test_builtins_have_no_place() -> None:
    assert SourceLocation.from_function(len) is None
    here = SourceLocation.from_function(test_builtins_have_no_place)
    assert here is not None
    assert here.format_short() == f"{__file__}:{here.line}"
