"""What every fault test needs: an app on a given database, workers to kill, and the invariants."""

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import Any

import psutil
import psycopg

from horsies import Horsies
from support.eventually import eventually

APP_FILE = Path(__file__).with_name("fault_app.py")
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "EXPIRED")


class Scene:
    """One database with its ledger, an app to send with, and any number of workers."""

    def __init__(self, url: str, *, is_pooled: bool) -> None:
        self.url = url
        self.workers: list[subprocess.Popen[bytes]] = []
        self.numbers: dict[str, int] = {}
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the scene
        file, self.ledger = tempfile.mkstemp(prefix="horsies-ledger-")
        os.close(file)
        given = {
            "HORSIES_FAULT_DATABASE_URL": url,
            "HORSIES_FAULT_LEDGER": self.ledger,
            "HORSIES_FAULT_POOLED": "1" if is_pooled else "0",
        }
        self.environment = os.environ | given
        self.module: Any = _load(given)
        self.app: Horsies = self.module.app

    def start_worker(self, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "horsies.cli.main", "worker", f"{APP_FILE}:app", *options]
        worker = subprocess.Popen(command, env=self.environment, stderr=self._log, stdout=self._log)
        self.workers.append(worker)
        return worker

    def send(self, kind: str, numbers: range, seconds: float = 0.0) -> None:
        task = getattr(self.module, kind)
        for number in numbers:
            handle = task.send(number, seconds).unwrap()
            self.numbers[handle.task_id] = number

    def scalar(self, statement: str, *values: Any) -> Any:
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(statement, values).fetchone()  # type: ignore[arg-type]
            return row[0] if row else None

    def rows(self, statement: str, *values: Any) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement, values).fetchall()  # type: ignore[arg-type]

    def count(self, *states: str) -> int:
        found: int = self.scalar(
            "select count(*) from horsies_tasks where status = any (%s)", list(states)
        )
        return found

    def wait_until_all_ended(self, *, within: float) -> None:
        def all_ended() -> bool:
            return self.count(*ENDED) == len(self.numbers)

        eventually(all_ended, within=within)

    def assert_invariants(self) -> None:
        """Nothing lost, nothing doubled without a recorded crash, no attempt that never ran."""
        stored = {row[0] for row in self.rows("select id from horsies_tasks")}
        assert stored == set(self.numbers), "a task sent is a task stored, and no other"
        assert not self.rows(
            "select id from horsies_tasks where status not in "
            "('PENDING', 'COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')"
        ), "no task is stuck"
        assert not self.rows(
            "select task_id from horsies_task_attempts group by task_id "
            "having count(*) <> max(attempt) or min(attempt) <> 1"
        ), "attempts are numbered without gaps"
        assert not self.rows(
            "select t.id from horsies_tasks t join horsies_task_attempts a on a.task_id = t.id "
            "and a.outcome = 'COMPLETED' where t.status <> 'COMPLETED'"
        ), "a completed attempt completes its task"
        begun = self.begun()
        recorded = dict(self.rows("select task_id, count(*) from horsies_task_attempts group by 1"))
        for task_id, number in self.numbers.items():
            runs, attempts = begun[number], recorded.get(task_id, 0)
            assert runs == attempts, f"task {number} began {runs} times, {attempts} are recorded"

    def begun(self) -> Counter[int]:
        """How often user code began, by number."""
        return Counter(map(int, Path(self.ledger).read_text().split()))

    def close(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
        self.app.get_broker().close()
        self._log.close()
        Path(self.ledger).unlink()

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")


@contextmanager
def scene(url: str, *, is_pooled: bool = False) -> Iterator[Scene]:
    made = Scene(url, is_pooled=is_pooled)
    try:
        yield made
    except BaseException:
        sys.stderr.write(made.log()[-8000:])
        raise
    finally:
        made.close()


def children_of(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The executing children of a worker: those its fork server has made."""
    try:
        servers = psutil.Process(worker.pid).children()
        return [child for server in servers for child in server.children()]
    except psutil.Error:
        return []


def kill_one_child(worker: subprocess.Popen[bytes]) -> None:
    for process in children_of(worker)[:1]:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.Error:
            return


def _load(environment: dict[str, str]) -> Any:
    os.environ.update(environment)
    spec = util.spec_from_file_location("fault_app", APP_FILE)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
