"""E-12 to E-20: the backend of Django's Tasks framework."""

import json
import pickle
import random
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

import django
from horsies.contrib.django import HorsiesBackend, HorsiesTask
from horsies.contrib.django import task as our_task
from horsies.contrib.django.actions import cancel
from horsies.contrib.django.backend import KIND
from horsies.contrib.django.compat import (
    IS_BACKPORT,
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from horsies.contrib.django.models import Task, TaskAttempt
from horsies.contrib.django.project import app
from horsies.contrib.django.testing import run_pending
from support.django_processes import manage
from support.django_project.shop import jobs, tasks
from support.django_project.shop.models import Note
from support.eventually import eventually

pytestmark = pytest.mark.django_db


def result_of(task_id: Any) -> Any:
    return task_backends["default"].get_result(str(task_id))


def run_again(task_id: Any) -> None:
    """Let a task that waits for its retry be due now."""
    with override_settings(HORSIES={"READONLY_MODELS": False}):
        Task.objects.filter(pk=task_id).update(enqueued_at=timezone.now(), next_retry_at=None)
    run_pending()


@contextmanager
def heard() -> Iterator[list[tuple[str, Any, str]]]:
    """What the three signals say."""
    found: list[tuple[str, Any, str]] = []
    signals = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}
    receivers = {
        name: lambda sender, task_result, name=name, **_: found.append(
            (name, sender, str(task_result.status))
        )
        for name in signals
    }
    for name, signal in signals.items():
        signal.connect(receivers[name])
    try:
        yield found
    finally:
        for name, signal in signals.items():
            signal.disconnect(receivers[name])


def plain() -> None:
    """A function to make tasks of."""


def without_context(text: str) -> None:
    """Takes something else first."""


def local_function() -> Any:
    def local() -> None:
        """Not at module level."""

    return local


NOT_WHOLE = "priority must be a whole number between -100 and 100."


@pytest.mark.acceptance("E-12")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: our_task(local_function()), "Task function must be defined at a module level."),
        (
            lambda: our_task(without_context, takes_context=True),
            "Task takes context but does not have a first argument of 'context'.",
        ),
        (lambda: our_task(plain, priority=101), NOT_WHOLE),
        (lambda: tasks.add.using(priority=-101), NOT_WHOLE),
        (lambda: tasks.add.using(priority=1.5), NOT_WHOLE),
        (
            lambda: our_task(plain, queue_name="nowhere"),
            "Queue 'nowhere' is not valid for backend.",
        ),
        (
            lambda: tasks.add.using(queue_name="nowhere"),
            "Queue 'nowhere' is not valid for backend.",
        ),
        (
            lambda: tasks.add.using(run_after=datetime(2030, 1, 1)),  # noqa: DTZ001
            "run_after must be an aware datetime.",
        ),
        (lambda: our_task(plain, max_retries=21), "max_retries must be a whole number between 0"),
        (lambda: our_task(plain, timeout=0), "timeout must be a positive number of seconds."),
    ],
)
def test_e12_invalid_tasks_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidTask, match=re.escape(message)):
        make()


@pytest.mark.acceptance("E-12")
async def test_e12_flags_and_settings_that_change() -> None:
    backend = task_backends["default"]
    flags = ("supports_defer", "supports_async_task", "supports_get_result", "supports_priority")
    low = tasks.add.using(queue_name="low")

    assert [getattr(backend, flag) for flag in flags] == [True] * 4
    path = "horsies.contrib.django.HorsiesBackend"
    with override_settings(TASKS={"default": {"BACKEND": path, "QUEUES": ["default"]}}):
        with pytest.raises(InvalidTask, match="Queue 'low' is not valid"):
            low.enqueue(1, 2)
        with pytest.raises(InvalidTask, match="Queue 'low' is not valid"):
            await low.aenqueue(1, 2)


@pytest.mark.acceptance("E-13")
def test_e13_results_that_do_not_exist() -> None:
    @app.task(f"native {uuid.uuid4()}")
    def native() -> int:
        return 1

    native_id = native.with_options(connection=django.db.connection).send().ok_value.task_id
    other = tasks.add.using(backend="other").enqueue(1, 2)
    mine = tasks.add.enqueue(1, 2)

    for missing in (str(uuid.uuid4()), "123", native_id, other.id):
        with pytest.raises(TaskResultDoesNotExist):
            task_backends["default"].get_result(missing)
    with pytest.raises(TaskResultMismatch):
        tasks.write.get_result(mine.id)
    assert tasks.add.get_result(mine.id).id == mine.id


@pytest.mark.acceptance("E-14")
def test_e14_run_after(start_worker: Callable[..., Any]) -> None:
    start_worker("--processes", "1", "--interval", "60")
    # The first task of a child also imports the project.
    tasks.write.enqueue("warm")
    eventually(lambda: Note.objects.filter(text="warm").exists(), within=20)
    wait = timedelta(seconds=1.5)
    due = timezone.now() + wait

    result = tasks.write.using(run_after=due).enqueue("due")
    # Until two seconds after it is due; the next poll is at least 36 s away.
    eventually(lambda: Note.objects.filter(text="due").exists(), within=wait.total_seconds() + 2)

    assert result_of(result.id).started_at >= due


@pytest.mark.acceptance("E-14")
def test_e14_naive_times_are_read_in_the_time_zone() -> None:
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Tokyo"):
        wanted = datetime(2030, 1, 1, 9, 0)  # noqa: DTZ001
        result = tasks.add.using(run_after=wanted).enqueue(1, 2)
    row = Task.objects.get(pk=result.id)

    with pytest.raises(InvalidTask, match="aware datetime"):
        tasks.add.using(run_after=wanted)
    assert row.enqueued_at.isoformat() == "2030-01-01T00:00:00+00:00"


@pytest.mark.acceptance("E-15")
def test_e15_priorities_run_in_their_order() -> None:
    priorities = [1, 0, -1, 100, -100]
    random.Random(3).shuffle(priorities)
    for priority in priorities:
        tasks.write.using(priority=priority).enqueue(str(priority))
    for number in range(3):
        tasks.write.using(priority=7).enqueue(f"equal {number}")

    run_pending()

    order = list(Note.objects.order_by("pk").values_list("text", flat=True))
    assert order == ["100", "equal 0", "equal 1", "equal 2", "1", "0", "-1", "-100"]


@pytest.mark.acceptance("E-16")
def test_e16_context_errors_and_workers_per_attempt() -> None:
    first = tasks.tell_attempt.enqueue("attempt")
    result = tasks.fail_once.enqueue()
    run_pending()
    between = result_of(result.id)
    run_again(result.id)
    done = result_of(result.id)
    never = tasks.fail_always.enqueue("never")
    run_pending()
    run_again(never.id)
    run_again(never.id)
    failed = result_of(never.id)

    assert result_of(first.id).return_value == 1
    assert between.status == "READY"
    assert done.return_value == 2
    assert done.attempts == len(done.worker_ids) == 2
    assert [error.exception_class for error in done.errors] == [ValueError]
    assert done.errors[0].traceback.startswith("Traceback (most recent call last):\n")
    assert 'raise ValueError("the first time")\n' in done.errors[0].traceback
    assert done.errors[0].traceback.endswith("ValueError: the first time\n")
    assert [error.exception_class for error in failed.errors] == [ValueError] * 3
    assert failed.attempts == len(failed.worker_ids) == 3


@pytest.mark.acceptance("E-17", "E-19")
def test_e17_a_worker_outlives_what_is_no_result_no_exception_and_no_task(committed: None) -> None:
    lambda_, leave, interrupt = (
        task.enqueue() for task in (tasks.give_function, tasks.leave, tasks.interrupt)
    )
    not_a_task = stored_by_hand("subprocess.check_output")
    missing = stored_by_hand("no.such.module.task")
    after = tasks.add.enqueue(1, 2)

    worked = manage("horsies_worker", "--batch", "--processes=1")

    found = [result_of(one.id) for one in (lambda_, leave, interrupt)]
    assert worked.returncode == 0, worked.stderr
    assert [one.status for one in found] == ["FAILED"] * 3
    classes = [one.errors[0].exception_class for one in found]
    assert classes == [TypeError, SystemExit, KeyboardInterrupt]
    assert [failure_of(row) for row in (not_a_task, missing)] == [
        ("FAILED", "django.core.exceptions.SuspiciousOperation"),
        ("FAILED", "builtins.ModuleNotFoundError"),
    ]
    assert result_of(after.id).return_value == 3


@pytest.mark.acceptance("E-18")
def test_e18_signals_fire_once_and_cannot_change_the_outcome(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def raising(**_: Any) -> None:
        raise RuntimeError("a broken receiver")

    for signal in (task_started, task_finished):
        signal.connect(raising)
    logger = "django_tasks" if IS_BACKPORT else "django.tasks"
    caplog.set_level("DEBUG", logger=logger)
    try:
        with heard() as told:
            result = tasks.add.enqueue(1, 2)
            run_pending()
    finally:
        for signal in (task_started, task_finished):
            signal.disconnect(raising)

    assert [(name, sender) for name, sender, _ in told] == [
        (name, HorsiesBackend) for name in ("enqueued", "started", "finished")
    ]
    assert [status for *_, status in told] == ["READY", "RUNNING", "SUCCESSFUL"]
    assert result_of(result.id).status == "SUCCESSFUL"
    assert len([r for r in caplog.records if r.name == logger]) == 3


@pytest.mark.acceptance("E-18")
def test_e18_a_run_that_was_killed_is_finished_by_its_worker(start_worker: Any) -> None:
    settings = {"HORSIES": {"TERMINATE_GRACE": 0.5}, "NOTE_SIGNALS": True}
    start_worker("--processes", "2", HORSIES_DJANGO_SETTINGS=json.dumps(settings))
    stopped = tasks.take.enqueue(60, "stopped")
    late, died = tasks.take_too_long.enqueue(), tasks.die.enqueue()
    eventually(lambda: Note.objects.filter(text="begun stopped").exists(), within=30)
    cancel([stopped.id])
    killed = (stopped.id, late.id, died.id)

    def said(word: str) -> list[str]:
        found = Note.objects.filter(text__startswith=word).values_list("text", flat=True)
        return sorted(text.removeprefix(f"{word} ") for text in found)

    eventually(lambda: len(said("finished")) >= 3, within=30)
    after = tasks.add.enqueue(1, 2)
    eventually(lambda: f"{after.id} SUCCESSFUL" in said("finished"), within=30)

    assert said("started") == sorted([*killed, after.id])
    assert said("finished") == sorted(
        [*(f"{one} FAILED" for one in killed), f"{after.id} SUCCESSFUL"]
    )


def stored_by_hand(path: str) -> Any:
    """A row of Django's kind, whatever its path leads to."""
    with override_settings(HORSIES={"READONLY_MODELS": False}):
        options = f'{{"kind":"{KIND}","django":{{"backend":"default"}}}}'
        return Task.objects.create(
            pk=uuid.uuid4(), task_name=path, task_options=options, enqueued_at=timezone.now()
        )


def failure_of(row: Any) -> tuple[str, str]:
    """The state of a task and the class of its one error."""
    row.refresh_from_db()
    (attempt,) = TaskAttempt.objects.filter(task_id=row.pk)
    return row.status, attempt.error_message.partition("\n")[0]


@pytest.mark.acceptance("E-19")
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("subprocess.check_output", "django.core.exceptions.SuspiciousOperation"),
        (f"{jobs.__name__}.fail", "django.core.exceptions.SuspiciousOperation"),
        ("no.such.module.task", "builtins.ModuleNotFoundError"),
        (f"{tasks.__name__}.gone", "builtins.ImportError"),
    ],
)
def test_e19_only_tasks_are_called(path: str, error: str) -> None:
    row = stored_by_hand(path)
    after = tasks.add.enqueue(1, 2)

    run_pending()

    assert failure_of(row) == ("FAILED", error)
    assert result_of(after.id).status == "SUCCESSFUL"


@pytest.mark.acceptance("E-20")
@pytest.mark.parametrize("name", ["fail_always", "fail_by_django"])
def test_e20_retries_are_fields_of_the_task(name: str) -> None:
    if not hasattr(tasks, name):
        pytest.skip("Django's own decorator hands fields on from 6.1 on")
    task = getattr(tasks, name)

    result = task.enqueue("again")
    run_pending()
    run_again(result.id)
    run_again(result.id)
    run_again(result.id)

    done = result_of(result.id)
    assert isinstance(task, HorsiesTask)
    assert (done.status, done.attempts) == ("FAILED", 3)


@pytest.mark.acceptance("E-20")
def test_e20_using_keeps_the_other_fields() -> None:
    task = our_task(plain, priority=3, queue_name="low", timeout=9, good_until=99, unique_key="k")
    later = task.using(run_after=timedelta(hours=1))

    changed = task.using(max_retries=5)

    assert changed == replace(task, max_retries=5)
    assert changed.max_retries == 5
    assert later == replace(task, run_after=later.run_after)
    assert later.run_after > timezone.now()


@pytest.mark.acceptance("E-20")
@pytest.mark.skipif(django.VERSION < (6, 1), reason="Django's tasks pickle from 6.1 on")
def test_e20_tasks_and_results_survive_pickling() -> None:
    result = tasks.fail_always.enqueue("pickled")

    again, task = pickle.loads(pickle.dumps((result, tasks.fail_always)))

    assert isinstance(task, HorsiesTask)
    assert task == tasks.fail_always
    assert (again.id, again.task) == (result.id, result.task)


@pytest.mark.acceptance("E-03")
def test_e03_a_backend_without_its_app_says_which_app_is_missing() -> None:
    messages = list(task_backends["default"].check())
    apps = ["django.contrib.contenttypes", "support.django_project.shop"]
    with override_settings(INSTALLED_APPS=apps):
        missing = list(task_backends["default"].check())

    assert messages == []
    assert [one.id for one in missing] == ["horsies.E002"]
    assert "horsies.contrib.django" in missing[0].hint


def test_a_unique_key_gives_the_task_that_holds_it() -> None:
    unique = our_task(plain, unique_key="only one")
    first, second = unique.enqueue(), unique.enqueue()

    assert first.id == second.id
    assert Task.objects.count() == 1


def test_options_of_the_backend_are_defaults_of_its_tasks() -> None:
    options = {"timeout": 5, "max_retries": 2, "good_until": 60, "enqueue": "atomic"}
    path = "horsies.contrib.django.HorsiesBackend"
    with override_settings(TASKS={"default": {"BACKEND": path, "OPTIONS": options}}):
        result = tasks.add.enqueue(1, 2)
        expired = tasks.add.enqueue(3, 4)
    row = Task.objects.get(pk=result.id)
    with override_settings(HORSIES={"READONLY_MODELS": False}):
        Task.objects.filter(pk=expired.id).update(status="EXPIRED")

    assert (row.options["timeout_ms"], row.max_retries) == (5000, 2)
    assert row.good_until - row.sent_at == timedelta(seconds=60)
    assert (result_of(expired.id).status, row.status) == ("FAILED", "PENDING")
    assert [one.exception_class.__name__ for one in result_of(expired.id).errors] == ["TaskExpired"]
