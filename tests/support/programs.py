"""Workers and scripts in a user's project, as processes of their own; warnings are errors there."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from support.command import start_horsies
from support.eventually import eventually


def run_python(
    project: Path, script: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=project,
        env=os.environ | environment,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )


@contextmanager
def worker(project: Path, locator: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """A worker for the app in that directory; afterwards it must have ended well."""
    process = start_horsies(
        project, "worker", locator, "--processes", "1", PYTHONWARNINGS="error", **environment
    )
    try:
        yield process
        process.terminate()
        assert process.wait(30) == 0, (project / "log.txt").read_text()
    finally:
        process.kill()
        process.wait()


def wait_for_worker(url: str) -> None:
    """Until a worker's first snapshot is stored: from then on it claims."""
    with psycopg.connect(url, autocommit=True) as connection:
        eventually(
            lambda: connection.execute("select 1 from horsies_worker_states").fetchone(), within=60
        )
