"""E-21 to E-27: the worker under Django."""

import json
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.utils import timezone

from horsies.contrib.django.actions import cancel
from horsies.contrib.django.compat import task_backends
from horsies.contrib.django.conf import SETTINGS
from horsies.contrib.django.models import Task
from horsies.contrib.django.testing import WorkerProcess, run_pending
from support import cluster
from support.django_processes import environment, manage
from support.django_project.settings import database
from support.django_project.shop import tasks
from support.django_project.shop.models import Note
from support.eventually import eventually

Start = Callable[..., Any]
FAST_RECOVERY = {
    "running_stale_threshold_ms": 2_000,
    "check_interval_ms": 1_000,
    "runner_heartbeat_interval_ms": 1_000,
    "claimer_heartbeat_interval_ms": 1_000,
}


def settings(**horsies: Any) -> str:
    return json.dumps({"HORSIES": horsies})


def result_of(result: Any) -> Any:
    return task_backends["default"].get_result(result.id)


def status(result: Any) -> str:
    return str(Task.objects.get(pk=result.id).status)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def begun(text: str = "") -> None:
    eventually(lambda: Note.objects.filter(text=f"begun {text}").exists(), within=30)


@pytest.mark.acceptance("E-21")
def test_e21_batch_max_tasks_and_queues(committed: None) -> None:
    for _ in range(5):
        tasks.add.enqueue(1, 2)
    for queue in ("low", "x"):
        tasks.add.using(queue_name=queue).enqueue(1, 2)

    three = manage("horsies_worker", "--max-tasks", "3", "--processes=2", "--queue-name=default")
    after_three = Task.objects.finished().count()
    rest = manage(
        "horsies_worker",
        "--batch",
        "--processes=2",
        "--queue-name=*",
        "--exclude-queues=x",
        "--worker-id=mine.1",
    )

    assert (three.returncode, after_three) == (0, 3), three.stderr
    assert rest.returncode == 0, rest.stderr
    assert list(Task.objects.pending().values_list("queue_name", flat=True)) == ["x"]
    assert set(
        Task.objects.filter(queue_name="low").values_list("claimed_by_worker_id", flat=True)
    ) == {"mine.1"}


@pytest.mark.acceptance("E-21")
@pytest.mark.parametrize(
    "words",
    [
        ("--exclude-queues=x", "--queue-name=default"),
        ("--interval=-1",),
        ("--interval=inf",),
        ("--max-tasks=0",),
        (f"--worker-id={'x' * 65}",),
        ("--worker-id=",),
        ("--backend=nowhere",),
        ("--queue-name=*", "--exclude-queues=default,low,x"),
    ],
)
@pytest.mark.django_db
def test_e21_options_that_cannot_be_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        call_command("horsies_worker", *words, "--no-reload")


@pytest.mark.acceptance("E-22")
def test_e22_signals_end_the_worker_as_they_should(start_worker: Start) -> None:
    idle = start_worker("--processes", "1")
    idle.signal(signal.SIGTERM)
    idle_code = idle.wait(within=1)
    busy = start_worker("--processes", "1")
    finished = tasks.take.enqueue(1.5, "to its end")
    begun("to its end")
    busy.signal(signal.SIGTERM)
    busy_code = busy.wait()
    hurried = start_worker("--processes", "2")
    aborted = tasks.take.enqueue(60, "not to its end")
    retried = tasks.take_retried.enqueue(60, "not this time")
    begun("not to its end")
    begun("not this time")
    hurried.signal(signal.SIGINT)
    eventually(lambda: "to finish" in hurried.log(), within=30)
    hurried.signal(signal.SIGTERM)
    hurried.wait()

    assert (idle_code, busy_code) == (0, 0)
    assert "tasks     by their import path" in idle.log()
    assert status(finished) == "COMPLETED"
    assert (status(aborted), status(retried)) == ("FAILED", "PENDING")
    assert Note.objects.filter(text__startswith="ended").count() == 1


@pytest.mark.acceptance("E-23")
@pytest.mark.seed("S84", "S85", "S87")
def test_e23_a_killed_worker_is_noticed_by_another(start_worker: Start) -> None:
    environ = {"HORSIES_DJANGO_SETTINGS": settings(APP={"recovery": FAST_RECOVERY})}
    killed = start_worker("--processes", "1", **environ)
    lost = tasks.take.enqueue(60, "lost")
    begun("lost")
    pid = Task.objects.get(pk=lost.id).worker_pid
    cluster.kill_process(killed.pid)
    left = Task.objects.get(pk=lost.id)
    start_worker("--processes", "1", **environ)

    # Far below the threshold that holds without a setting, five minutes.
    eventually(lambda: status(lost) == "FAILED", within=20)

    assert (left.status, left.worker_pid) == ("RUNNING", pid)
    assert pid
    (error,) = result_of(lost).errors
    assert error.exception_class.__name__ == "WorkerCrashed"
    assert "no longer running" in error.traceback


@pytest.mark.acceptance("E-23")
def test_e23_tasks_of_another_host_are_judged_by_their_heartbeats(start_worker: Start) -> None:
    start_worker(
        "--processes", "1", HORSIES_DJANGO_SETTINGS=settings(APP={"recovery": FAST_RECOVERY})
    )
    result, silent = runs_elsewhere(timedelta(minutes=1)), runs_elsewhere(timedelta(minutes=-1))
    # Three passes of the reaper and the death watch: a later task shows that they went by.
    for number in range(2):
        later = tasks.write.using(run_after=timezone.now() + timedelta(seconds=2)).enqueue(
            str(number)
        )
        eventually(lambda later=later: status(later) == "COMPLETED", within=30)

    assert status(result) == "RUNNING"
    assert status(silent) == "FAILED", "its heartbeats have ended, whatever its host"
    assert result_of(silent).errors[0].exception_class.__name__ == "WorkerCrashed"


def runs_elsewhere(last_beat: timedelta) -> Any:
    """A task as a worker of another host has written it; its last heartbeat is so far from now."""
    result = tasks.add.using(
        queue_name="low", run_after=timezone.now() + timedelta(days=1)
    ).enqueue(1, 2)
    beat_at = timezone.now() + last_beat
    begun_at = min(beat_at, timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(
            "update horsies_tasks set status = 'RUNNING', started_at = %s, worker_pid = 4194304,"
            " claimed_by_worker_id = 'elsewhere', claimed_at = %s, worker_hostname = 'elsewhere'"
            " where id = %s",
            [begun_at, begun_at, result.id],
        )
        cursor.execute(
            "insert into horsies_heartbeats (task_id, sender_id, role, sent_at)"
            " values (%s, 'elsewhere', 'runner', %s)",
            [result.id, beat_at],
        )
    return result


@pytest.mark.acceptance("E-25")
def test_e25_connections_do_not_pile_up(start_worker: Start) -> None:
    def backends() -> list[Any]:
        with connections["default"].cursor() as cursor:
            cursor.execute(
                "select application_name from pg_stat_activity where datname = current_database()"
                " and application_name = 'e25'"
            )
            return cursor.fetchall()

    def ran(count: int, **database: Any) -> tuple[int, int]:
        """The connections that are left, and the queries that a child remembers."""
        options = {"OPTIONS": {"application_name": "e25", **database.pop("OPTIONS", {})}}
        plain = {**connection.settings_dict, **options, **database}
        env = environment(plain, DEBUG=True)
        worker = start_worker("--processes", "2", "--no-reload", **env)
        task_backends["default"].enqueue_many([(tasks.write, (str(n),), {}) for n in range(count)])
        eventually(lambda: not Task.objects.exclude(status="COMPLETED").exists(), within=60)
        # The engine's own four bear the name that the settings give them, as Django's do.
        found = len(list(backends()))
        counted = tasks.count_queries.enqueue()
        eventually(lambda: status(counted) == "COMPLETED", within=30)
        worker.signal(signal.SIGTERM)
        worker.wait()
        return found, result_of(counted).return_value

    kept, remembered = ran(200, CONN_MAX_AGE=600)
    closed, _ = ran(20, CONN_MAX_AGE=0)
    pooled, _ = ran(20, CONN_MAX_AGE=0, OPTIONS={"pool": {"min_size": 1, "max_size": 2}})

    own = 4
    assert kept <= own + 2, "one of each child"
    assert closed <= own
    assert pooled <= own + 2 * 2, "at most the pool of each child"
    assert remembered < 10, "the log of queries is emptied after each task"


@pytest.mark.acceptance("E-26")
@pytest.mark.seed("S81", "S82", "S83")
def test_e26_time_limits_end_what_ignores_them(start_worker: Start) -> None:
    start_worker(
        "--processes", "3", HORSIES_DJANGO_SETTINGS=settings(TERMINATE_GRACE=2, TASK_TIMEOUT=60)
    )
    stuck, polite = tasks.ignore_the_end.enqueue(60), tasks.take_too_long.enqueue()
    beside = tasks.take.enqueue(4, "beside")

    eventually(lambda: status(stuck) == status(polite) == "FAILED", within=30)
    eventually(lambda: status(beside) == "COMPLETED", within=30)

    (error,) = result_of(stuck).errors
    eventually(lambda: is_gone(Note.objects.get(text="ignoring").pid), within=10)
    assert error.traceback == "Task timed out after 1 seconds"
    assert error.exception_class.__name__ == "TaskTimeout"
    assert Note.objects.filter(text="asked to end").exists(), "SIGTERM comes first"
    assert SETTINGS["TERMINATE_GRACE"].default == 5


@pytest.mark.acceptance("E-27")
@pytest.mark.seed("S89")
def test_e27_cancel_stops_what_runs_and_withdraws_what_waits(start_worker: Start) -> None:
    waiting = tasks.take.enqueue(60, "waiting")
    withdrawn = cancel([waiting.id])
    start_worker("--processes", "2", HORSIES_DJANGO_SETTINGS=settings(TERMINATE_GRACE=1))
    running, stubborn = tasks.take.enqueue(60, "running"), tasks.ignore_the_wish.enqueue(60)
    begun("running")
    begun("stubborn")

    asked = cancel([running.id, stubborn.id])
    # The grace, and one second.
    eventually(lambda: {status(running), status(stubborn)} == {"CANCELLED"}, within=2)

    assert (withdrawn, asked) == (1, 2)
    assert status(waiting) == "CANCELLED"
    assert not Note.objects.filter(text__in=("begun waiting", "ended running")).exists()
    assert result_of(running).errors[-1].exception_class.__name__ == "TaskCancelled"


@pytest.mark.acceptance("E-27")
@pytest.mark.django_db
def test_e27_a_late_success_does_not_undo_a_cancellation() -> None:
    """The task returns after its row is CANCELLED: its claim is lost, and its result with it."""
    result = tasks.cancel_this_row.enqueue()

    ran = run_pending()

    assert ran == 1
    assert Note.objects.filter(text="about to succeed").exists()
    assert (status(result), result_of(result).status) == ("CANCELLED", "FAILED")


def test_the_whole_command_line_is_there_with_the_projects_app(committed: None) -> None:
    waiting = tasks.add.enqueue(1, 2)
    (cancelled, listed, workflows) = (
        manage("horsies", *words)
        for words in (
            ("cancel", "--id", waiting.id, "--by", "ann", "--reason", "sold out"),
            ("audit", "--json"),
            ("workflow", "list", "--json"),
        )
    )

    assert [one.returncode for one in (cancelled, listed, workflows)] == [0, 0, 0], cancelled.stderr
    assert status(waiting) == "CANCELLED"
    (entry,) = json.loads(listed.stdout)
    assert (entry["done_by"], entry["action"], entry["reason"]) == ("ann", "cancel", "sold out")


@pytest.mark.acceptance("E-24")
@pytest.mark.slow
@pytest.mark.faults
def test_e24_a_restarted_database_is_found_again(tmp_path: Any) -> None:
    durable = cluster.DurableCluster(cluster.make_directory())
    durable.start()
    try:
        found = database(durable.url)
        assert manage("migrate", "-v0", database=found).returncode == 0
        worker = WorkerProcess(found, "--processes", "1", **environment(found))
        code = "from support.django_project.shop.tasks import *; {}.enqueue({}, {!r})"

        def send(name: str, seconds: float, text: str) -> None:
            done = manage("shell", "-v0", "-c", code.format(name, seconds, text), database=found)
            assert done.returncode == 0, done.stderr

        def texts(query: str) -> list[str]:
            with psycopg.connect(durable.url) as other:
                return [text for (text,) in other.execute(query.encode()).fetchall()]

        def notes() -> list[str]:
            return texts("select text from shop_note order by id")

        def statuses() -> list[str]:
            return texts("select status from horsies_tasks order by id")

        send("take", 0, "first")
        eventually(lambda: "ended first" in notes(), within=40)
        durable.kill9()
        durable.start()
        send("take", 0, "after idle")
        eventually(lambda: "ended after idle" in notes(), within=60)
        send("hold", 4, "busy")
        eventually(lambda: "held busy" in notes(), within=40)
        durable.kill9()
        durable.start()
        eventually(lambda: statuses() == ["COMPLETED"] * 3, within=60)

        assert worker.process.poll() is None
        assert notes() == [
            "begun first",
            "ended first",
            "begun after idle",
            "ended after idle",
            "held busy",
        ]
        worker.close()
    finally:
        durable.close()
