"""The `horsies` command as users run it: in a process of its own, in a project directory."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("horsies"))


def write_project(directory: Path, files: Mapping[str, str]) -> Path:
    """A project that the command line finds modules in."""
    (directory / "pyproject.toml").write_text("")
    for name, text in files.items():
        (directory / name).write_text(text)
    return directory


def run_horsies(
    project: Path, *arguments: str, within: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run it to its end; the embedded server is out of bounds."""
    return subprocess.run(
        [COMMAND, *arguments],
        cwd=project,
        env={**os.environ, "HORSIES_EMBEDDED": "0", "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )


def start_horsies(project: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start it; its log goes to `log.txt` in the project."""
    with (project / "log.txt").open("a") as log:
        return subprocess.Popen(
            [COMMAND, *arguments],
            cwd=project,
            env={**os.environ, "HORSIES_EMBEDDED": "0", "NO_COLOR": "1", **environment},
            stdout=log,
            stderr=log,
            text=True,
        )
