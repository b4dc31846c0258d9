"""`horsies demo` from start to end, as its users see it; afterwards nothing runs."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from horsies import embedded_postgres
from support.cluster import make_directory, remove_directory
from support.command import COMMAND, run_horsies
from support.eventually import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def project() -> Iterator[Path]:
    """A directory that the user of an embedded server can reach."""
    directory = make_directory()
    (directory / "pyproject.toml").touch()
    yield directory
    embedded_postgres.stop(directory)
    remove_directory(directory)


def processes_in(project: Path) -> list[psutil.Process]:
    """Those the demo starts inherit its environment; the server names the directory."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            traces = [*process.cmdline(), process.environ().get("HORSIES_HOME", "")]
        except psutil.Error:
            continue
        if any(str(project) in trace for trace in traces):
            found.append(process)
    return found


def test_demo_shows_a_summary_and_leaves_nothing_running(project: Path) -> None:
    home = {"HORSIES_HOME": str(project), "HORSIES_EMBEDDED": "1"}

    finished = run_horsies(project, "demo", **home)

    assert finished.returncode == 0, finished.stdout + finished.stderr
    for text in ("tasks/s", "p95", "CARD_DECLINED", "WORKER_CRASHED", "horsies init my_project"):
        assert text in finished.stdout
    # The server's supervisor may take a moment longer than the server.
    eventually(lambda: not processes_in(project), within=2)


def test_demo_uses_the_database_of_the_environment(project: Path, database_url: str) -> None:
    finished = run_horsies(project, "demo", HORSIES_DATABASE_URL=database_url)

    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert not (project / ".horsies").exists()


def test_demo_without_a_database_says_what_to_do(project: Path) -> None:
    finished = run_horsies(project, "demo")

    assert finished.returncode == 1
    assert "HORSIES_DATABASE_URL" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_demo_with_a_database_that_is_away_says_so(project: Path) -> None:
    finished = run_horsies(project, "demo", HORSIES_DATABASE_URL="postgresql://localhost:1/none")

    assert finished.returncode == 1
    assert "connection" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_interrupted_demo_ends_its_worker(project: Path, database_url: str) -> None:
    environment = {"HORSIES_HOME": str(project), "HORSIES_DATABASE_URL": database_url}
    demo = subprocess.Popen(
        [COMMAND, "demo"],
        cwd=project,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: len(processes_in(project)) > 1, within=30)

    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=30)

    assert demo.returncode == 0, errors
    assert "Traceback" not in errors
    assert processes_in(project) == []
