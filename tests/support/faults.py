"""What every fault test needs: an app on a given database, workers to kill, and the invariants."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import util
from pathlib import Path
from typing import Any

import psutil
import psycopg

from horsies import Horsies
from horsies.recovery.begun_slots import find_begun_slots
from horsies.states import TASK_TRANSITIONS, TaskStatus
from support.cluster import kill_process
from support.eventually import eventually

# `make faults` turns the screw; `make test` takes the short form.
ROUNDS = int(os.environ.get("HORSIES_FAULT_ROUNDS", "2"))
IS_SHORT = ROUNDS <= 4
APP_FILE = Path(__file__).with_name("fault_app.py")
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "EXPIRED")

# Every change of a status, written by the database itself.
_AUDIT = """
create table audit (
    number bigint generated always as identity, task_id text, was text, became text);
create function audit_status() returns trigger language plpgsql as $$
begin
    insert into audit (task_id, was, became) values (new.id, old.status, new.status);
    return null;
end $$;
create trigger audit_status after update on horsies_tasks for each row
    when (old.status is distinct from new.status) execute function audit_status();
"""
_ATTEMPTS = """
select t.id, count(a), count(a) filter (where a.error_code = 'WORKER_CRASHED')
from horsies_tasks t left join horsies_task_attempts a on a.task_id = t.id
where t.task_name <> 'interruptible' group by t.id
"""
_MOVES = "select distinct was, became from audit"
_ENDED_TWICE = """
select task_id from audit group by task_id having
    count(*) filter (where became in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')) >
    count(*) filter (where was in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')) + 1
"""


class Scene:
    """One database with its ledger, an app to send with, and any number of workers."""

    def __init__(self, url: str, **settings: dict[str, Any]) -> None:
        self.url = url
        self.workers: list[subprocess.Popen[bytes]] = []
        self.numbers: dict[str, int] = {}
        self._eye: psycopg.Connection[Any] | None = None
        self._has_several_servers = "," in url
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the scene
        file, self.ledger = tempfile.mkstemp(prefix="horsies-ledger-")
        os.close(file)
        given = {
            "HORSIES_FAULT_DATABASE_URL": url,
            "HORSIES_FAULT_LEDGER": self.ledger,
            "HORSIES_FAULT_SETTINGS": json.dumps(settings),
        }
        self.environment = os.environ | given
        self.module: Any = _load(given)
        self.app: Horsies = self.module.app
        self.app.get_broker().database.ensure_schema()
        self._ask(_AUDIT)

    def start_worker(
        self, *options: str, python: Sequence[str] = (sys.executable, "-m")
    ) -> subprocess.Popen[bytes]:
        command = [*python, "horsies.cli.main", "worker", f"{APP_FILE}:app", *options]
        worker = subprocess.Popen(command, env=self.environment, stderr=self._log, stdout=self._log)
        self.workers.append(worker)
        return worker

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        kill_process(worker.pid)
        worker.wait()

    def wait_ready(self, worker: subprocess.Popen[bytes]) -> str:
        """Until the worker's first snapshot is stored; its id."""
        statement = "select worker_id from horsies_worker_states where pid = %s limit 1"
        found: str = eventually(lambda: self.scalar(statement, worker.pid), within=30)
        return found

    def send(self, kind: str, numbers: range, seconds: float = 0.0, **options: Any) -> None:
        """Send tasks; less than no seconds means until the gate is opened."""
        task = getattr(self.module, kind)
        task = task.with_options(**options) if options else task
        for number in numbers:
            handle = task.send(number, seconds).unwrap()
            self.numbers[handle.task_id] = number

    def send_many(self, kind: str, numbers: range, seconds: float = 0.0) -> None:
        handles = getattr(self.module, kind).send_many([(number, seconds) for number in numbers])
        sent = zip(handles.unwrap(), numbers, strict=True)
        self.numbers |= {handle.task_id: number for handle, number in sent}

    def scalar(self, statement: str, *values: Any) -> Any:
        rows = self.rows(statement, *values)
        return rows[0][0] if rows else None

    def rows(self, statement: str, *values: Any) -> list[Any]:
        return self._ask(statement, values).fetchall()

    def _ask(self, statement: str, values: Sequence[Any] | None = None) -> psycopg.Cursor[Any]:
        """Ask on the connection of the last question, if it is still good.

        Tests look fifty times a second, and a new session costs the server more than most answers.
        Which of several servers is the one to ask may have changed since.
        """
        if self._eye is not None and not self._has_several_servers:
            with suppress(psycopg.OperationalError):
                return self._eye.execute(statement.encode(), values)
        self._close_eye()
        self._eye = psycopg.connect(self.url, autocommit=True, prepare_threshold=None)
        return self._eye.execute(statement.encode(), values)

    def _close_eye(self) -> None:
        if self._eye is not None:
            self._eye.close()
        self._eye = None

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
        moves = [tuple(map(TaskStatus, move)) for move in self.rows(_MOVES)]
        assert [m for m in moves if m[1] not in TASK_TRANSITIONS[m[0]]] == [], "no other move"
        assert not self.rows(_ENDED_TWICE), "a task ends once, unless it is requeued by hand"
        begun = self.begun()
        unseen = crash_count = 0
        for task_id, attempts, crashes in self.rows(_ATTEMPTS):
            number = self.numbers[task_id]
            runs = begun[number]
            assert attempts - crashes <= runs <= attempts, (
                f"task {number} began {runs} times; {attempts} are recorded, {crashes} as crashes"
            )
            unseen += attempts - runs
            crash_count += crashes
        # A kill can fall between the worker's mark "user code follows" and user code's line in the
        # ledger, some 20 microseconds, or longer when the child loses its core there: rarely.
        assert unseen <= 1 + crash_count // 50, f"{unseen} attempts are recorded that never began"

    def find_sent(self) -> None:
        """Take stock of tasks sent by other programs."""
        found = self.rows("select id, (args::json ->> 0)::integer from horsies_tasks")
        self.numbers = {task_id: number for task_id, number in found if number is not None}

    def open_gate(self) -> None:
        """Let tasks sent with less than no seconds end."""
        Path(f"{self.ledger}.open").touch()

    def begun(self) -> Counter[int]:
        """How often user code began, by number."""
        return Counter(map(int, Path(self.ledger).read_text().split()))

    def close(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
        self._remove_begun_slots()
        self._close_eye()
        self.app.get_broker().close()
        self._log.close()
        Path(self.ledger).unlink()
        Path(f"{self.ledger}.open").unlink(missing_ok=True)

    def _remove_begun_slots(self) -> None:
        """Of killed workers: no peer in this database is left to do it."""
        with suppress(psycopg.Error):
            for (worker_id,) in self.rows("select distinct worker_id from horsies_worker_states"):
                if begun_slots := find_begun_slots(worker_id):
                    begun_slots.remove()

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")


@contextmanager
def scene(url: str, **settings: dict[str, Any]) -> Iterator[Scene]:
    """A scene; `settings` are changes to the app's configuration: app, broker, recovery."""
    made = Scene(url, **settings)
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


def kill_children(worker: subprocess.Popen[bytes], *, at_most: int) -> int:
    """Kill executing children; how many."""
    return sum(kill_process(child.pid) for child in children_of(worker)[:at_most])


def _load(environment: dict[str, str]) -> Any:
    os.environ.update(environment)
    spec = util.spec_from_file_location("fault_app", APP_FILE)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
