"""`horsies web` and `horsies demo --web` as their users run them."""

import os
import re
import signal
import socket
import stat
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
    """The link that a dashboard prints; it ends with the block, by Ctrl-C."""
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
        first = httpx.get(address_of(by_file))
    (project / "log.txt").unlink()
    with dashboard(project, "shop:app", HORSIES_DATABASE_URL=database_url) as by_module:
        second = httpx.get(f"{address_of(by_module)}suggestions?word=task:")
        said = (project / "log.txt").read_text()

    assert (first.status_code, "Overview" in first.text) == (200, True)
    assert second.json() == [{"word": "task:job", "about": ""}]
    (quoted,) = shown_in("how-to/dashboard.md", "printed in tests/end_to_end/test_web.py")
    changing = re.compile(r":\d+/login\?token=\S+")
    assert changing.sub(":PORT/login", quoted) in changing.sub(":PORT/login", said)


def address_of(link: str) -> str:
    return link.partition("login?")[0]


def test_the_printed_link_lets_steer_and_the_address_only_look(
    tmp_path: Path, database_url: str
) -> None:
    """A proxy on this machine that adds no header is a client like any other here."""
    project = write_project(tmp_path, {"shop.py": APP})

    with dashboard(project, "-d", database_url) as link, httpx.Client() as browser:
        anyone = browser.get(f"{address_of(link)}queues")
        browser.post(f"{address_of(link)}queues/default/pause", data=csrf_in(browser))
        refused = browser.post(f"{address_of(link)}queues/default/pause", data=csrf_in(browser))
        opened = browser.get(link, follow_redirects=True)
        paused = browser.post(f"{address_of(link)}queues/default/pause", data=csrf_in(browser))

    assert (anyone.status_code, refused.status_code, paused.status_code) == (200, 403, 303)
    assert "open the link that horsies web printed" in anyone.text
    assert (opened.status_code, str(opened.url)) == (200, address_of(link))


def csrf_in(browser: httpx.Client) -> dict[str, str]:
    return {"csrf": browser.cookies["horsies_csrf"]}


def test_a_socket_lets_its_owner_steer(tmp_path: Path, database_url: str) -> None:
    project = write_project(tmp_path, {"shop.py": APP})
    path = project / "web.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    process = start_horsies(project, "web", "-d", database_url, "--unix", "web.sock")
    log = project / "log.txt"
    eventually(lambda: "horsies web: web.sock\n" in log.read_text(), within=30)
    transport = httpx.HTTPTransport(uds=str(path))

    with httpx.Client(transport=transport, base_url="http://localhost", timeout=30) as browser:
        browser.get("/queues").raise_for_status()
        paused = browser.post("/queues/default/pause", data=csrf_in(browser))
        forwarded = browser.get("/queues", headers={"x-forwarded-for": "203.0.113.9"})
        mode = stat.S_IMODE(path.stat().st_mode)
        second = run_horsies(project, "web", "-d", database_url, "--unix", "web.sock")
    process.send_signal(signal.SIGINT)

    assert process.wait(20) == 0
    assert (mode, paused.status_code, forwarded.status_code) == (0o600, 303, 403)
    assert not path.exists()
    assert second.returncode == 1
    assert "web.sock cannot be used: Address already in use; choose another --unix" in second.stderr


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
    link = eventually(lambda: re.search(r"http://\S+", log.read_text()), within=60)[0]
    with httpx.Client(follow_redirects=True) as browser:
        page = browser.get(link)
        tasks = f"{address_of(link)}tasks?q=status:completed"
        eventually(lambda: "state-completed" in browser.get(tasks).text, within=60)
    started = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGINT)

    assert process.wait(60) == 0, log.read_text()
    assert "You may look but not steer" not in page.text
    assert len(started) >= 3
    eventually(lambda: not any(one.is_running() for one in started), within=10)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
