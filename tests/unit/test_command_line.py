"""The frame of the `horsies` command: help, exit codes, rendered errors."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from horsies.cli import main
from horsies.codes import ErrorCode
from horsies.errors import ConfigurationError


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["horsies", *arguments])
    return main.run()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sub-command `sample` that ends in the way its argument says."""
    monkeypatch.setitem(main.COMMANDS, "sample", (f"{__name__}:sample", "A sample."))


@click.command()
@click.argument("way", type=click.Choice(["well", "refused", "interrupted", "code"]))
def sample(way: str) -> None:
    if way == "refused":
        raise ConfigurationError("no such place", code=ErrorCode.CLI_INVALID_ARGS)
    if way == "interrupted":
        raise KeyboardInterrupt
    if way == "code":
        click.get_current_context().exit(3)


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        ([], 1),
        (["--help"], 0),
        (["--version"], 0),
        (["pg"], 1),
        (["workflow"], 1),
        (["pg", "no-such-command"], 2),
        (["no-such-command"], 2),
        (["--no-such-option"], 2),
        (["sample"], 2),
        (["sample", "badly"], 2),
        (["sample", "well"], 0),
        (["sample", "refused"], 1),
        (["sample", "interrupted"], 0),
        (["sample", "code"], 3),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else str(value),
)
def test_exit_code(monkeypatch: pytest.MonkeyPatch, arguments: list[str], exit_code: int) -> None:
    assert _run(monkeypatch, *arguments) == exit_code


def test_without_a_command_the_help_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(monkeypatch)

    printed = capsys.readouterr().out
    assert "Usage: horsies" in printed
    for name, (_, summary) in main.COMMANDS.items():
        assert f"{name} " in printed
        assert summary.split(maxsplit=1)[0] in printed


@pytest.mark.usefixtures("command")
def test_error_is_rendered_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(monkeypatch, "sample", "refused")

    printed = capsys.readouterr()
    assert "error[HRS-206]: no such place" in printed.err
    assert printed.out == ""


def test_every_listed_command_can_be_loaded() -> None:
    context = click.Context(main.horsies)

    for name in main.COMMANDS:
        assert isinstance(main.horsies.get_command(context, name), click.Command)


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from horsies.cli import main; main.run();"
        "sys.exit(any(entry[0].split(':')[0] in sys.modules for entry in main.COMMANDS.values()))"
    )

    finished = subprocess.run(
        [sys.executable, "-c", code, "--help"], check=False, capture_output=True
    )

    assert finished.returncode == 0, finished.stderr


def test_commands_print_by_the_one_way_that_shows_stored_text_as_text() -> None:
    """`echo` and `make_console`; the demo shows only what it has made itself."""
    files = [path for path in Path(main.__file__).parent.glob("*.py") if "demo" not in path.stem]
    ways = re.compile(r"click\.s?echo\(|\bConsole\(\w|(?<![\w.])print\(|sys\.stdout\.write")

    found = {path.stem for path in files if ways.search(path.read_text())}

    assert found == {"printing", "console"}
