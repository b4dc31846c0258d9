"""Schedulers that die, stop, lose their database or have a wrong clock: each slot is sent once."""

import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horsies.scheduling.slots import slot_id
from support.cluster import DurableCluster, kill_process
from support.database import Database, connect
from support.eventually import eventually
from support.faults import ROUNDS
from support.schedulers import APP, SchedulerProcess, schedulers
from support.workers import HORSIES, WorkerProcess

pytestmark = [pytest.mark.faults, pytest.mark.slow]

COUNT = 100
SLOT_ROUNDS = ROUNDS * 5 // 2
SHIFTED = Path(__file__).parents[1] / "support" / "shifted.py"
MOVE = "update horsies_schedule_state set next_run_at = %s::timestamptz where next_run_at > now()"


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    database = connect(database_url)
    yield database
    database.connection.close()


def wait_ready(db: Database, count: int = COUNT) -> None:
    eventually(lambda: db.value("select count(*) from horsies_schedule_state") == count, within=20)


def wait_until_sent(db: Database, count: int, within: float = 15) -> None:
    eventually(lambda: db.value("select count(*) from horsies_tasks") >= count, within=within)


def make_due(db: Database, planned: set[str]) -> None:
    """Give every schedule a slot that is due now, and remember the ids these slots must have."""
    slot = db.value("select clock_timestamp()")
    db.execute(MOVE, slot)
    planned |= {slot_id(f"s{number}", slot) for number in range(COUNT)}


def assert_each_once(db: Database, planned: set[str]) -> None:
    ids = {row["id"] for row in db.execute("select id from horsies_tasks")}
    assert ids == planned, f"{len(planned - ids)} lost, {len(ids - planned)} too many"
    assert db.value("select sum(run_count) from horsies_schedule_state") == len(planned)
    assert db.value("select count(*) from horsies_schedule_runs") == len(planned)


def test_killed_and_stopped_schedulers_send_each_slot_once(database_url: str, db: Database) -> None:
    chance = random.Random(os.environ["HORSIES_FAULT_SEED"])
    planned: set[str] = set()
    settings = {"HORSIES_TEST_SCHEDULES": str(COUNT)}

    with ExitStack() as stack:
        running: list[SchedulerProcess] = []

        def start() -> None:
            running.extend(stack.enter_context(schedulers(database_url, 1, **settings)))

        for _ in range(3):
            start()
        wait_ready(db)
        for number in range(SLOT_ROUNDS):
            make_due(db, planned)
            # Somewhere in the middle of the slots.
            wait_until_sent(db, len(planned) - chance.randrange(COUNT))
            victim = chance.choice(running)
            # The first is killed, the second stopped, and who knows what befalls the others.
            if number == 0 or (number > 1 and chance.random() < 0.4):
                kill_process(victim.process.pid)
                running.remove(victim)
                start()
            else:
                victim.signal(signal.SIGSTOP)
            # A stopped one may hold one schedule for ten seconds; the others go on without it.
            wait_until_sent(db, len(planned) - 1)
            for one in running:
                one.signal(signal.SIGCONT)
            wait_until_sent(db, len(planned))

    assert_each_once(db, planned)
    assert len(planned) == SLOT_ROUNDS * COUNT


def test_another_takes_over_within_seconds(database_url: str, db: Database) -> None:
    planned: set[str] = set()
    with schedulers(database_url, 2, HORSIES_TEST_SCHEDULES=str(COUNT)) as (first, second):
        wait_ready(db)
        for victim in (first, second):
            make_due(db, planned)
            wait_until_sent(db, len(planned) - COUNT // 2)
            if victim is first:
                kill_process(victim.process.pid)
            wait_until_sent(db, len(planned), within=5)

    assert_each_once(db, planned)


def test_killed_workers_with_schedulers_send_each_slot_once(
    database_url: str, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORSIES_TEST_SCHEDULES", str(COUNT))
    chance = random.Random(os.environ["HORSIES_FAULT_SEED"])
    planned: set[str] = set()
    options = ("--with-scheduler", "--processes", "1")

    with ExitStack() as stack:

        def start() -> WorkerProcess:
            worker = WorkerProcess(database_url, *options, locator=APP)
            stack.callback(worker.close)
            return worker

        running = [start(), start()]
        for worker in running:
            worker.wait_ready()
        wait_ready(db)
        for _ in range(ROUNDS):
            make_due(db, planned)
            wait_until_sent(db, len(planned) - chance.randrange(COUNT))
            victim = running.pop(0)
            kill_process(victim.pid)
            wait_until_sent(db, len(planned), within=10)
            running.append(start())
        assert [worker.wait_ready().stop() for worker in running] == [0, 0]

    assert_each_once(db, planned)


def test_scheduler_stopped_with_a_lock_loses_it_and_doubles_nothing(
    database_url: str, db: Database
) -> None:
    """Its session is ended by the server; when it goes on, it finds the slot sent."""
    with schedulers(database_url, 1) as (only,):
        wait_ready(db, 1)
        db.execute(
            "create function hold() returns trigger language plpgsql as "
            "$$begin perform pg_sleep(0.5); return new; end$$"
        )
        db.execute(
            "create trigger hold before insert on horsies_tasks for each row "
            "execute function hold()"
        )
        slot = db.value("select clock_timestamp()")
        db.execute(MOVE, slot)
        eventually(
            lambda: db.value(
                "select count(*) from pg_stat_activity "
                "where datname = current_database() and wait_event = 'PgSleep'"
            )
        )
        only.signal(signal.SIGSTOP)

        with schedulers(database_url, 1):
            wait_until_sent(db, 1, within=20)
            only.signal(signal.SIGCONT)
            second = db.value("select clock_timestamp()")
            db.execute(MOVE, second)
            wait_until_sent(db, 2)

    ids = {row["id"] for row in db.execute("select id from horsies_tasks")}
    assert ids == {slot_id("s0", slot), slot_id("s0", second)}


def test_outage_loses_and_doubles_nothing(durable_cluster: DurableCluster) -> None:
    with schedulers(durable_cluster.url, 2, HORSIES_TEST_SCHEDULES=str(COUNT)):
        db = eventually(lambda: connect(durable_cluster.url))
        wait_ready(db)
        planned: set[str] = set()
        make_due(db, planned)
        db.connection.close()

        durable_cluster.kill9()
        durable_cluster.start()

        db = eventually(lambda: connect(durable_cluster.url))
        wait_until_sent(db, COUNT)
        make_due(db, planned)
        wait_until_sent(db, 2 * COUNT)

    assert_each_once(db, planned)
    db.connection.close()


@pytest.mark.parametrize("shift_s", [3600, -3600], ids=["ahead", "behind"])
def test_jump_of_the_machines_clock_changes_nothing(
    database_url: str, db: Database, tmp_path: Path, shift_s: int
) -> None:
    shift = tmp_path / "shift"
    shift.write_text("0")
    program = (sys.executable, str(SHIFTED), str(shift), *HORSIES[2:])
    planned: set[str] = set()

    with schedulers(database_url, 1, program, HORSIES_TEST_SCHEDULES=str(COUNT)):
        wait_ready(db)
        make_due(db, planned)
        wait_until_sent(db, len(planned))
        shift.write_text(str(shift_s))
        make_due(db, planned)
        wait_until_sent(db, len(planned))
        shift.write_text("0")
        make_due(db, planned)
        wait_until_sent(db, len(planned))

    assert_each_once(db, planned)
    ahead = db.value("select min(next_run_at) from horsies_schedule_state") - datetime.now(UTC)
    assert timedelta(minutes=59) < ahead <= timedelta(hours=1)
