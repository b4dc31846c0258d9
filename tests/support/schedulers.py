"""Real `horsies scheduler` processes for tests."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.workers import HORSIES

APP = f"{Path(__file__).with_name('scheduler_app.py')}:app"


class SchedulerProcess:
    """One `horsies scheduler`; `program` runs it another way."""

    def __init__(self, url: str, program: Sequence[str] = HORSIES, **settings: str) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self.process = subprocess.Popen(
            [*program, "scheduler", APP],
            env={**os.environ, "HORSIES_TEST_APP_URL": url, **settings},
            stdout=self._log,
            stderr=self._log,
        )

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, within: float = 20) -> int:
        return self.process.wait(within)

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()


@contextmanager
def schedulers(
    url: str, count: int, program: Sequence[str] = HORSIES, **settings: str
) -> Iterator[list[SchedulerProcess]]:
    """Several at once; what they said is shown when the test fails."""
    running = [SchedulerProcess(url, program, **settings) for _ in range(count)]
    try:
        yield running
    except BaseException:
        sys.stderr.write("\n".join(one.log()[-3000:] for one in running))
        raise
    finally:
        for one in running:
            one.close()
