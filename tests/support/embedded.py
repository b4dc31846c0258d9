"""Processes that use an embedded server, as root or as an ordinary user, and can be killed."""

import json
import os
import pwd
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
import pytest

import horsies
from horsies import embedded_postgres

_ORDINARY_USER = "daemon"  # not `nobody`, as which root's servers run
_HOLDER = """
import json, os, sys
from pathlib import Path
from horsies.embedded_postgres import acquire
project, idle_timeout, may_fork = json.loads(sys.argv[1])
server = acquire(Path(project), idle_timeout=idle_timeout)
if may_fork and os.fork():
    server.release()
    os._exit(0)
assert "embedded_postgres" not in sys.modules
print(json.dumps({"url": server.url, "version": server.version}), flush=True)
sys.stdin.read()
server.release()
"""


@dataclass(frozen=True, slots=True)
class Someone:
    """Whom a process runs as; `uid` is None for whoever runs the tests."""

    uid: int | None = None

    def own(self, directory: Path) -> Path:
        if self.uid is not None:
            os.chown(directory, self.uid, -1)
        return directory

    def start(
        self, arguments: list[str], environment: dict[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        """Start Python with our package importable."""
        places = {str(Path(module.__file__ or "").parents[1]) for module in (horsies, psycopg)}
        return subprocess.Popen(
            [_python_for(self.uid), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            env=os.environ | {"PYTHONPATH": os.pathsep.join(places)} | (environment or {}),
            user=self.uid,
            extra_groups=None if self.uid is None else [],
        )


def ordinary_user() -> Someone:
    if os.geteuid() != 0:
        return Someone()
    return Someone(pwd.getpwnam(_ORDINARY_USER).pw_uid)


def require_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")


class Holder:
    """Another process that uses the server until told or killed."""

    def __init__(
        self,
        project: Path,
        someone: Someone,
        *,
        idle_timeout: float = 5,
        environment: dict[str, str] | None = None,
        may_fork: bool = False,
    ) -> None:
        arguments = json.dumps([str(project), idle_timeout, may_fork])
        self._process = someone.start(["-c", _HOLDER, arguments], environment)
        self._answer: dict[str, str] | None = None

    @property
    def url(self) -> str:
        return self._wait()["url"]

    @property
    def version(self) -> str:
        return self._wait()["version"]

    def release(self) -> str:
        """Let it end; return what it wrote to stderr."""
        _, errors = self._process.communicate("", timeout=60)
        return errors

    def kill9(self) -> None:
        self._wait()
        self._process.kill()
        self._process.communicate()

    def close(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.communicate()

    def _wait(self) -> dict[str, str]:
        if self._answer is None:
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            if not line:
                pytest.fail(self._process.communicate()[1])
            self._answer = json.loads(line)
        return self._answer


def postmaster_pid(project: Path) -> int | None:
    return embedded_postgres.status(project).postmaster_pid


def supervisor_of(project: Path) -> psutil.Process:
    pid = postmaster_pid(project)
    assert pid is not None
    supervisor = psutil.Process(psutil.Process(pid).ppid())
    assert "horsies.embedded_postgres.supervisor" in supervisor.cmdline()
    return supervisor


def kill9(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def _python_for(uid: int | None) -> str:
    """An interpreter of our version that this user may run: root's own may be closed to others."""
    shared = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    for program in (sys.executable, shared):
        try:
            probe = subprocess.run([program, "-c", ""], user=uid, cwd="/", check=False)
        except OSError:
            continue
        if probe.returncode == 0:
            return program
    return pytest.skip(f"user {uid} can run no Python {sys.version_info.minor} here")
