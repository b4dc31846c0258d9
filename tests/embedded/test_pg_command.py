"""`horsies pg` from the outside."""

import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest


def _pg(project: Path, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "horsies.cli.main", "pg", arguments[0], *arguments[1:]],
        input=stdin,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )


def test_url_starts_the_server_and_prints_nothing_else(project: Path) -> None:
    answer = _pg(project, "url")

    assert answer.stderr == ""
    with psycopg.connect(answer.stdout.strip()) as connection:
        assert connection.info.dbname == "horsies"


@pytest.mark.usefixtures("has_data")
def test_life_of_a_server(project: Path) -> None:
    assert _pg(project, "status").returncode == 1

    started = _pg(project, "start", "--idle-timeout", "60")
    running = _pg(project, "status")
    selected = _pg(project, "psql", "-XAtc", "select 6 * 7")
    stopped = _pg(project, "stop")

    assert "(development only)" in started.stderr
    assert running.returncode == 0
    assert started.stdout.strip() in running.stdout
    assert selected.stdout == "42\n"
    assert stopped.stdout == "stopped\n"
    assert _pg(project, "stop").stdout == "was not running\n"


@pytest.mark.usefixtures("has_data")
def test_start_says_that_a_running_server_keeps_its_idle_timeout(project: Path) -> None:
    first = _pg(project, "start", "--idle-timeout", "60")
    second = _pg(project, "start")

    assert "keeps its idle timeout" not in first.stderr
    assert "keeps its idle timeout" in second.stderr
    assert second.stdout == first.stdout


@pytest.mark.usefixtures("has_data")
def test_reset_asks_first(project: Path) -> None:
    _pg(project, "url")
    data = project / ".horsies/pg/data"

    refused = _pg(project, "reset", stdin="n\n")
    assert refused.returncode == 1
    assert data.exists()

    accepted = _pg(project, "reset", "--yes")
    assert accepted.stdout == "deleted\n"
    assert not data.exists()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.usefixtures("has_data")
def test_commands_show_the_port(project: Path) -> None:
    port = _free_port()
    refused = _pg(project, "url", "--tcp")
    started = _pg(project, "start", "--port", str(port))
    shown = _pg(project, "url", "--tcp")
    status = _pg(project, "status")
    selected = _pg(project, "psql", "-XAtc", "select 6 * 7")

    assert refused.returncode == 1
    assert "horsies pg start --port" in refused.stderr
    with psycopg.connect(shown.stdout.strip()) as connection:
        assert connection.info.port == port
    assert started.stdout == f"postgresql://horsies:***@127.0.0.1:{port}/horsies\n"
    assert "horsies pg url --tcp" in started.stderr
    assert f"tcp url    {started.stdout}" in status.stdout
    assert selected.stdout == "42\n"


@pytest.mark.usefixtures("has_data")
def test_password_is_printed_only_when_asked_for(project: Path) -> None:
    port = str(_free_port())
    commands = [
        ("start", "--port", port),
        ("start", "--port", port),  # it runs already
        ("start", "--port", str(_free_port())),  # refused
        ("start",),
        ("status",),
        ("url",),
        ("psql", "-XAtc", "select 1"),
        ("psql", "-XAtc", "no such statement"),
        ("stop",),
        ("status",),
        ("url", "--tcp"),  # nothing runs
    ]

    answers = [_pg(project, *command) for command in commands]

    directory = project / ".horsies/pg"
    password = (directory / "password").read_text().strip()
    assert [answer.args for answer in answers if password in answer.stdout + answer.stderr] == []
    assert password not in (directory / "log").read_text()
    assert password not in (directory / "server.json").read_text()
