"""No command shows the password of a database, however its address is written."""

import re
import sys
from pathlib import Path

import pytest

from horsies.cli import main
from support.command import write_project

# Every piece of a password that a form below holds.
PIECES = re.compile("zebra|quokka")
FORMS = {
    "a URL": "postgresql://u:zebraquokka@127.0.0.1:1/d",
    "a URL of another driver": "postgresql+psycopg://u:zebraquokka@127.0.0.1:1/d",
    "the short scheme": "postgres://u:zebraquokka@127.0.0.1:1/d",
    "an unescaped @": "postgresql://u:zebra@quokka@127.0.0.1:1/d",
    "a short part before an unescaped @": "postgresql://u:a@zebra@127.0.0.1:1/d",
    "an unescaped @ and a slash": "postgresql://u:ze@zebra/quokka@127.0.0.1:1/d",
    "an unescaped colon": "postgresql://u:zebra:quokka@127.0.0.1:1/d",
    "an escaped @": "postgresql://u:zebra%40quokka@127.0.0.1:1/d",
    "a malformed escape": "postgresql://u:zebra%quokka@127.0.0.1:1/d",
    "a space": "postgresql://u:zebra quokka@127.0.0.1:1/d",
    "a wrong port": "postgresql://u:zebraquokka@127.0.0.1:one/d",
    "a wrong address": "postgresql://u:zebraquokka@[::1/d",
    "a parameter": "postgresql://127.0.0.1:1/d?user=u&password=zebraquokka",
    "a DSN": "host=127.0.0.1 port=1 user=u password=zebraquokka dbname=d",
    "a DSN with quotes": "host=127.0.0.1 port=1 password = 'zebra quokka' user=u",
    "a DSN with escapes": r"host=127.0.0.1 port=1 password=zebra\ quokka user=u",
    "no scheme": "u:zebraquokka@127.0.0.1/d",
    "half a scheme": "postgresql:/u:zebraquokka@127.0.0.1/d",
    "another database": "mysql://u:zebraquokka@127.0.0.1/d",
    "a URL of Java": "jdbc:postgresql://127.0.0.1/d?user=u&password=zebraquokka",
}
COMMANDS = (
    "check APP", "check APP --show-config", "check APP --live", "ping APP", "migrate APP",
    "migrate APP --check", "doctor", "status", "health", "metrics", "top --once",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_no_command_shows_a_password(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    module = f"secretive_{list(FORMS).index(form)}"
    task = '@app.task("job")\nasync def job() -> int:\n    return 1\n'
    text = f"from horsies import Horsies\napp = Horsies(allow_plain_returns=True)\n{task}"
    monkeypatch.chdir(write_project(tmp_path, {f"{module}.py": text}))
    monkeypatch.setenv("HORSIES_DATABASE_URL", FORMS[form])

    printed: dict[str, str] = {}
    for line in COMMANDS:
        monkeypatch.setattr(sys, "argv", ["horsies", *line.replace("APP", f"{module}.py").split()])
        code = _exit_code()
        said = capfd.readouterr()
        printed[line] = f"{said.out}{said.err}"
        assert code in (0, 1), f"{line}: {printed[line]}"

    assert {line: text for line, text in printed.items() if PIECES.search(text)} == {}
    assert "***" in printed["check APP --show-config"]


@pytest.mark.parametrize("form", FORMS)
def test_source_that_holds_a_password_is_shown_without_it(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    module = f"literal_{list(FORMS).index(form)}"
    text = f"from horsies import Horsies\napp = Horsies({FORMS[form]!r}, prefetch_buffer=-1)\n"
    monkeypatch.chdir(write_project(tmp_path, {f"{module}.py": text}))

    monkeypatch.setattr(sys, "argv", ["horsies", "check", f"{module}.py"])
    code = _exit_code()
    said = capfd.readouterr()

    assert code == 1
    assert "Horsies(" in said.err
    assert not PIECES.search(f"{said.out}{said.err}")


def _exit_code() -> int:
    try:
        return main.run()
    except SystemExit as end:
        return int(end.code or 0)
