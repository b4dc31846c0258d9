"""Real `horsies` processes for tests: start, wait until ready, signal, read what they said."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import termios
from importlib import util
from pathlib import Path
from typing import Any

import psycopg

from support.eventually import eventually

APP_FILE = Path(__file__).with_name("worker_app.py")
HORSIES = (sys.executable, "-m", "horsies.cli.main")
LEDGER = (
    "create table ledger (number integer, pid integer, at timestamptz default clock_timestamp())"
)


def environment(url: str, settings: dict[str, Any]) -> dict[str, str]:
    return {
        **os.environ,
        "HORSIES_TEST_APP_URL": url,
        "HORSIES_TEST_APP_SETTINGS": json.dumps(settings),
    }


def load_app_module(url: str, settings: dict[str, Any], file: Path = APP_FILE) -> Any:
    """The workers' app in this process, to send with."""
    before = dict(os.environ)
    os.environ.update(environment(url, settings))
    try:
        spec = util.spec_from_file_location(f"{file.stem}_under_test", file)
        assert spec is not None
        assert spec.loader is not None
        module = util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        os.environ.clear()
        os.environ.update(before)


def run_horsies(
    *arguments: str, url: str = "", directory: Path | None = None, **settings: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return subprocess.run(
        [*HORSIES, *arguments],
        env=environment(url, settings),
        cwd=directory,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )


def _take_terminal() -> None:
    """Make standard input the terminal of this session, so that its Ctrl-C reaches us."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class WorkerProcess:
    """One `horsies worker`, in a process group of its own."""

    def __init__(
        self,
        url: str,
        *options: str,
        locator: str = f"{APP_FILE}:app",
        directory: Path | None = None,
        terminal: int | None = None,
        **settings: Any,
    ) -> None:
        self.url = url
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self.process = subprocess.Popen(
            [*HORSIES, "worker", locator, *options],
            env=environment(url, settings),
            cwd=directory,
            stdin=terminal,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            preexec_fn=None if terminal is None else _take_terminal,  # noqa: PLW1509  # one ioctl
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_ready(self) -> "WorkerProcess":
        """Until its first snapshot is in the database."""
        with psycopg.connect(self.url, autocommit=True) as connection:

            def has_snapshot() -> bool:
                assert self.process.poll() is None, self.log()
                found = connection.execute(
                    "select 1 from horsies_worker_states where pid = %s", [self.pid]
                )
                return found.fetchone() is not None

            eventually(has_snapshot, within=20)
        return self

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, within: float = 20) -> int:
        """Its exit code."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker did not end:\n{self.log()[-4000:]}") from None

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def close(self) -> None:
        """End it and all its children, whatever state they are in."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        self._log.close()
