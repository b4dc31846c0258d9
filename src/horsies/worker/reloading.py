"""`--reload`: run the command in a child process and restart it when a Python file changes."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import click

_POLL_S = 0.5
_SKIPPED = {".git", ".venv", "venv", "node_modules", "__pycache__", ".horsies"}


def run_reloading() -> int:
    """Watch the working directory until Ctrl-C or SIGTERM; return the last exit code."""
    command = [sys.executable, *(word for word in sys.orig_argv[1:] if word != "--reload")]
    child: subprocess.Popen[bytes] | None = None
    stopping = threading.Event()

    def stop(number: int, _frame: object) -> None:
        stopping.set()
        # A second signal would stop the worker at once, and Ctrl-C already reached the whole group.
        if child is not None and not (number == signal.SIGINT and _is_in_foreground()):
            child.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    code = 0
    while not stopping.is_set():
        before, changed = _stamps(), None
        child = subprocess.Popen(command)
        while changed is None and not stopping.wait(_POLL_S):
            changed = _changed(before, _stamps())
        if not stopping.is_set():
            click.echo(f"{changed} changed, restarting", err=True)
            child.terminate()
        code = child.wait()
    # A death by SIGTERM means that the signal came before the worker had its handler.
    return 0 if code == -signal.SIGTERM else code


def _is_in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # stdin is no terminal
        return False


def _stamps() -> dict[str, int]:
    found: dict[str, int] = {}
    for directory, names, files in os.walk(Path.cwd()):
        names[:] = [name for name in names if name not in _SKIPPED]
        for name in files:
            if name.endswith(".py"):
                path = Path(directory) / name
                try:
                    found[str(path)] = path.stat().st_mtime_ns
                except FileNotFoundError:  # deleted in the meantime
                    continue
    return found


def _changed(before: dict[str, int], after: dict[str, int]) -> str | None:
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            return path
    return None
