"""What users write is checked by mypy and pyright as promised, no more and no less."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest
from mypy import api as mypy

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
FILES = sorted(str(path.relative_to(ROOT)) for path in PROGRAMS.glob("*.py"))

Findings = Callable[[], dict[str, set[int]]]


@cache
def mypy_findings() -> dict[str, set[int]]:
    out, err, _ = mypy.run(["--config-file", str(ROOT / "pyproject.toml"), "--strict", *FILES])
    assert not err, err
    return _lines_by_file(re.findall(r"^(\S+?):(\d+): error:", out, re.MULTILINE))


@cache
def pyright_findings() -> dict[str, set[int]]:
    command = [sys.executable, "-m", "pyright", "--outputjson", *FILES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        pytest.skip(f"pyright cannot start: {done.stdout[-300:]} {done.stderr[-300:]}")
    return _lines_by_file(
        (finding["file"], finding["range"]["start"]["line"] + 1)
        for finding in report["generalDiagnostics"]
        if finding["severity"] == "error"
    )


def _lines_by_file(findings: Iterable[tuple[str, str | int]]) -> dict[str, set[int]]:
    lines: dict[str, set[int]] = {}
    for file, line in findings:
        lines.setdefault(Path(file).name, set()).add(int(line))
    return lines


def refused_lines(name: str) -> set[int]:
    text = (PROGRAMS / name).read_text("utf-8").splitlines()
    return {number for number, line in enumerate(text, 1) if line.endswith("# refused")}


CHECKERS = pytest.mark.parametrize(
    "findings", [mypy_findings, pyright_findings], ids=["mypy", "pyright"]
)


@pytest.mark.parametrize(
    "name", ["accepted.py", "accepted_schedules.py", "accepted_web.py", "accepted_workflows.py"]
)
@CHECKERS
def test_the_promised_uses_type_check(findings: Findings, name: str) -> None:
    assert findings().get(name, set()) == set()


@pytest.mark.parametrize("name", ["refused.py", "refused_schedules.py", "refused_workflows.py"])
@CHECKERS
def test_wrong_uses_are_refused_and_nothing_else(findings: Findings, name: str) -> None:
    expected = refused_lines(name)

    assert len(expected) > 15
    assert findings().get(name) == expected
