"""`horsies scheduler` as users run it: what keeps it from starting, how it stops, what it sends."""

import signal

import pytest

from support.database import Database
from support.eventually import eventually
from support.schedulers import APP, SchedulerProcess, schedulers
from support.workers import WorkerProcess


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"HORSIES_TEST_SCHEDULES": "0"}, "has no schedules"),
        ({"HORSIES_TEST_DISABLED": "1"}, "are disabled"),
        ({"HORSIES_TEST_INVALID": "1"}, "arguments do not fit"),
    ],
    ids=["no config", "disabled", "invalid"],
)
def test_scheduler_that_cannot_run_says_why(
    database_url: str, settings: dict[str, str], said: str
) -> None:
    with schedulers(database_url, 1, **settings) as (scheduler,):
        code = scheduler.wait()
        log = scheduler.log()

    assert code == 1
    assert said in log
    assert "HRS-205" in log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_scheduler_sends_when_due_and_stops_when_told(
    database_url: str, db: Database, number: signal.Signals
) -> None:
    with schedulers(database_url, 1) as (scheduler,):
        wait_ready(db, scheduler)

        db.execute("update horsies_schedule_state set next_run_at = now()")
        eventually(lambda: db.value("select count(*) from horsies_tasks") == 1, within=3)

        scheduler.signal(number)
        assert scheduler.wait() == 0


def test_worker_with_a_scheduler_runs_a_slot_and_drains(database_url: str, db: Database) -> None:
    worker = WorkerProcess(database_url, "--with-scheduler", "--processes", "1", locator=APP)
    try:
        worker.wait_ready()
        eventually(lambda: db.value("select count(*) from horsies_schedule_state"))
        db.execute("update horsies_schedule_state set next_run_at = now()")
        eventually(lambda: db.statuses() == {"COMPLETED": 1})
        db.execute("update horsies_schedule_state set next_run_at = now()")
        eventually(lambda: sum(db.statuses().values()) == 2)

        code = worker.stop()
        log = worker.log()
    finally:
        worker.close()

    assert code == 0, log
    assert db.statuses() == {"COMPLETED": 2}, log
    assert "Traceback" not in log
    assert "scheduler 1 schedule(s) of the app" in log


def wait_ready(db: Database, scheduler: SchedulerProcess) -> None:
    def is_ready() -> bool:
        assert scheduler.process.poll() is None, scheduler.log()
        return bool(db.value("select count(*) from horsies_schedule_state"))

    eventually(is_ready, within=20)
