"""`horsies web` and `horsies demo --web` as their users run them."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from click.testing import CliRunner

from horsies.cli.web import command
from support.command import COMMAND, run_horsies, start_horsies, write_project
from support.eventually import eventually
from support.pages import shown_in

pytestmark = pytest.mark.slow
APP = """
from horsies import *
app = Horsies()
@app.task("job")
async def job(number: int) -> TaskResult[int, TaskError]:
    return TaskResult(ok=number)
"""
TOKEN = "a-token-of-sixteen-letters"


@contextmanager
def dashboard(project: Path, *arguments: str, **environment: str) -> Iterator[str]:
    """The address that a dashboard prints; it ends with the block, by Ctrl-C."""
    process = start_horsies(project, "web", "--port", "0", *arguments, **environment)
    log = project / "log.txt"
    try:
        found = eventually(lambda: re.search(r"http://\S+", log.read_text()), within=30)
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0, log.read_text()


def test_a_module_or_a_database_is_shown(tmp_path: Path, database_url: str) -> None:
    project = write_project(tmp_path, {"shop.py": APP, ".env": f"DATABASE_URL='{database_url}'\n"})

    with dashboard(project) as by_file:
        first = httpx.get(by_file)
    (project / "log.txt").unlink()
    with dashboard(project, "shop:app", HORSIES_DATABASE_URL=database_url) as by_module:
        second = httpx.get(f"{by_module}tasks/suggestions?word=task:")
        said = (project / "log.txt").read_text()

    assert (first.status_code, "Overview" in first.text) == (200, True)
    assert second.json() == [{"word": "task:job", "about": ""}]
    (quoted,) = shown_in("how-to/dashboard.md", "printed in tests/end_to_end/test_web.py")
    assert re.sub(r":\d+/", ":PORT/", quoted) in re.sub(r":\d+/", ":PORT/", said)


def test_another_address_is_served_to_those_who_know_the_token(
    tmp_path: Path, database_url: str
) -> None:
    project = write_project(tmp_path, {"shop.py": APP})
    access = ("-d", database_url, "--host", "0.0.0.0", "--read-only")

    with dashboard(project, *access, HORSIES_WEB_TOKEN=TOKEN) as address:
        local = address.replace("0.0.0.0", "127.0.0.1")
        stranger = httpx.get(local)
        known = httpx.get(local, headers={"authorization": f"Bearer {TOKEN}"})
        renamed = httpx.get(local, headers={"host": "evil.example.com"})

    assert (stranger.status_code, known.status_code, renamed.status_code) == (303, 200, 421)
    assert "read-only" in known.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--host", "0.0.0.0"), "say who may see the dashboard"),
        (("--host", "::"), "say who may see the dashboard"),
        (("--token", "short"), "at least 16 characters"),
        (("--token", TOKEN, "--user", "ann:scrypt$00$00"), "choose one of tokens, users"),
        (("--user", "ann"), "give a name and a hash"),
        (("--user", "ann:plain"), "--hash-password"),
        (("--trusted-header", "X-User"), "name the addresses of the proxies"),
        (("--trusted-header", "X-User", "--trusted-proxy", "x"), "does not appear to be"),
        (("--tick-rate", "0"), "tick-rate"),
        (("--port", "70000"), "port"),
    ],
)
def test_wrong_options_say_what_is_wrong(arguments: tuple[str, ...], said: str) -> None:
    finished = CliRunner().invoke(command, ["-d", "postgresql://nowhere/x", *arguments])

    assert finished.exit_code == 2
    assert said in finished.output


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        finished = run_horsies(tmp_path, "web", "-d", "postgresql://nowhere/x", "--port", port)

    assert finished.returncode == 1
    assert f"127.0.0.1:{port} cannot be used" in finished.stderr
    assert "choose another --port" in finished.stderr


def test_a_password_is_hashed(tmp_path: Path) -> None:
    finished = subprocess.run(
        [COMMAND, "web", "--hash-password"],
        cwd=tmp_path,
        input="correct horse\ncorrect horse\n",
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,  # without a terminal the password comes from the input
    )

    assert re.search(r"^scrypt\$[0-9a-f]{32}\$[0-9a-f]{128}$", finished.stdout, re.MULTILINE)


def test_the_demo_is_busy_and_leaves_nothing_behind(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    process = start_horsies(
        tmp_path,
        *("demo", "--web", "--port", "0"),
        TMPDIR=str(tmp_path),
        HORSIES_EMBEDDED="1",
    )
    log = tmp_path / "log.txt"
    found = eventually(lambda: re.search(r"http://\S+", log.read_text()), within=60)
    eventually(
        lambda: "state-completed" in httpx.get(f"{found[0]}tasks?q=status:completed").text,
        within=60,
    )
    started = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGINT)

    assert process.wait(60) == 0, log.read_text()
    assert len(started) >= 3
    eventually(lambda: not any(one.is_running() for one in started), within=10)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
