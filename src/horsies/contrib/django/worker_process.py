"""A worker of this project in a process of its own, for tests."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from horsies.contrib.django.models import WorkerState
from horsies.contrib.django.test_worker import VARIABLE

_START_S = 30.0


class WorkerProcess:
    """One `manage.py` command of this project on the database of the running tests.

    Its environment tells it where the test database is and where modules are found.
    """

    command = "horsies_worker"

    def __init__(self, database: dict[str, Any], *options: str, **environment: str) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "horsies.contrib.django.test_worker", self.command, *options],
            env={**process_environment(database), **environment},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_ready(self) -> "WorkerProcess":
        """Until its first snapshot is in the database."""
        deadline = time.monotonic() + _START_S
        while not WorkerState.objects.filter(pid=self.pid).exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the worker did not start:\n{self.log()}")
            time.sleep(0.02)
        return self

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, within: float = 30) -> int:
        """Its exit code."""
        return self.process.wait(within)

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def close(self) -> None:
        """End it and all its children, whatever state they are in."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        self._log.close()


def process_environment(database: dict[str, Any]) -> dict[str, str]:
    """What a process needs to be one of this project's, on this database."""
    plain = {key: value for key, value in database.items() if key != "TEST"}
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        VARIABLE: json.dumps(plain, default=str),
    }
