"""`--reload`: run the command in a process of its own, anew whenever a Python file changes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click

_POLL_S = 0.5
_SKIPPED = {".git", ".venv", "venv", "node_modules", "__pycache__", ".horsies"}


def run_reloading(arguments: list[str]) -> int:
    """Watch the working directory until Ctrl-C or SIGTERM; the last exit code."""
    stopping = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    while True:
        before = _stamps()
        child = subprocess.Popen([sys.executable, "-m", "horsies.cli.main", *arguments])
        changed = None
        while not stopping and changed is None:
            time.sleep(_POLL_S)
            changed = _changed(before, _stamps())
        child.send_signal(signal.SIGTERM)
        code = child.wait()
        if stopping:
            return code
        click.echo(f"{changed} changed: restarting", err=True)


def _stamps() -> dict[str, int]:
    found: dict[str, int] = {}
    for directory, names, files in os.walk(Path.cwd()):
        names[:] = [name for name in names if name not in _SKIPPED]
        for name in files:
            if name.endswith(".py"):
                path = Path(directory) / name
                try:
                    found[str(path)] = path.stat().st_mtime_ns
                except FileNotFoundError:  # deleted while we looked
                    continue
    return found


def _changed(before: dict[str, int], after: dict[str, int]) -> str | None:
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            return path
    return None
