"""E-12 to E-20: the backend of Django's Tasks framework."""

import pickle
import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

import django
from horsies.contrib.django import HorsiesBackend, HorsiesTask
from horsies.contrib.django import task as our_task
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: our_task(lambda: None).using(), "module level"),
        (lambda: our_task(without_context, takes_context=True), "first argument of 'context'"),
        (lambda: our_task(plain, priority=101), "between -100 and 100"),
        (lambda: tasks.add.using(priority=-101), "between -100 and 100"),
        (lambda: tasks.add.using(queue_name="nowhere"), "Queue 'nowhere' is not valid"),
        (lambda: tasks.add.using(run_after=datetime(2030, 1, 1)), "aware datetime"),  # noqa: DTZ001
        (lambda: our_task(plain, max_retries=21), "between 0 and 20"),
        (lambda: our_task(plain, timeout=0), "positive number"),
    ],
)
def test_e12_invalid_tasks_are_refused(make: Callable[[], Any], message: str) -> None:
    def local() -> None:
        """Not at module level."""

    with pytest.raises(InvalidTask, match=message):
        our_task(local) if message == "module level" else make()


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


def test_e14_run_after(start_worker: Callable[..., Any]) -> None:
    start_worker("--processes", "1", "--interval", "60")
    due = timezone.now() + timedelta(seconds=2)

    result = tasks.write.using(run_after=due).enqueue("due")
    eventually(lambda: Note.objects.filter(text="due").exists(), within=20)

    started = result_of(result.id).started_at
    # Two seconds is the promise on a free machine; here only "not early, and not by the poll".
    assert due <= started < due + timedelta(seconds=15)


def test_e14_naive_times_are_read_in_the_time_zone() -> None:
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Tokyo"):
        wanted = datetime(2030, 1, 1, 9, 0)  # noqa: DTZ001
        result = tasks.add.using(run_after=wanted).enqueue(1, 2)
    row = Task.objects.get(pk=result.id)

    assert row.enqueued_at.isoformat() == "2030-01-01T00:00:00+00:00"


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


def test_e16_context_errors_and_workers_per_attempt() -> None:
    first = tasks.tell_attempt.enqueue("attempt")
    result = tasks.fail_once.enqueue()
    run_pending()
    between = result_of(result.id)
    run_again(result.id)
    done = result_of(result.id)

    assert result_of(first.id).return_value == 1
    assert between.status == "READY"
    assert done.return_value == 2
    assert done.attempts == len(done.worker_ids) == 2
    assert [error.exception_class for error in done.errors] == [ValueError]
    assert done.errors[0].traceback.startswith("Traceback (most recent call last):\n")
    assert done.errors[0].traceback.endswith("ValueError: the first time\n")


def test_e17_what_is_no_result_and_what_is_no_exception() -> None:
    lambda_, leave, interrupt = (
        task.enqueue() for task in (tasks.give_function, tasks.leave, tasks.interrupt)
    )
    after = tasks.add.enqueue(1, 2)

    run_pending()

    found = [result_of(one.id) for one in (lambda_, leave, interrupt)]
    assert [one.status for one in found] == ["FAILED"] * 3
    classes = [one.errors[0].exception_class for one in found]
    assert classes == [TypeError, SystemExit, KeyboardInterrupt]
    assert result_of(after.id).return_value == 3


def test_e18_signals_fire_once_and_cannot_change_the_outcome(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def raising(**_: Any) -> None:
        raise RuntimeError("a broken receiver")

    task_started.connect(raising)
    logger = "django_tasks" if IS_BACKPORT else "django.tasks"
    caplog.set_level("DEBUG", logger=logger)
    try:
        with heard() as told:
            result = tasks.add.enqueue(1, 2)
            run_pending()
    finally:
        task_started.disconnect(raising)

    assert [(name, sender) for name, sender, _ in told] == [
        (name, HorsiesBackend) for name in ("enqueued", "started", "finished")
    ]
    assert [status for *_, status in told] == ["READY", "RUNNING", "SUCCESSFUL"]
    assert result_of(result.id).status == "SUCCESSFUL"
    assert len([r for r in caplog.records if r.name == logger]) == 3


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
    with override_settings(HORSIES={"READONLY_MODELS": False}):
        options = f'{{"kind":"{KIND}","django":{{"backend":"default"}}}}'
        row = Task.objects.create(
            pk=uuid.uuid4(), task_name=path, task_options=options, enqueued_at=timezone.now()
        )
    after = tasks.add.enqueue(1, 2)

    run_pending()

    row.refresh_from_db()
    (attempt,) = TaskAttempt.objects.filter(task_id=row.pk)
    assert row.status == "FAILED"
    assert attempt.error_message.partition("\n")[0] == error
    assert result_of(after.id).status == "SUCCESSFUL"


def test_e20_retries_are_fields_of_the_task() -> None:
    result = tasks.fail_always.enqueue("again")
    run_pending()
    run_again(result.id)
    run_again(result.id)
    run_again(result.id)
    done = result_of(result.id)
    changed = tasks.fail_always.using(max_retries=5, priority=3)
    later = tasks.fail_always.using(run_after=timedelta(hours=1))

    assert (done.status, done.attempts) == ("FAILED", 3)
    assert (changed.max_retries, changed.priority, changed.func) == (
        5,
        3,
        tasks.fail_always.func,
    )
    assert later.run_after > timezone.now()


@pytest.mark.skipif(django.VERSION < (6, 1), reason="Django hands fields on from 6.1 on")
def test_e20_djangos_own_decorator_takes_retries() -> None:
    made = tasks.task(max_retries=2)(jobs.nothing)

    assert isinstance(made, HorsiesTask)
    assert (made.max_retries, made.using(priority=3).max_retries) == (2, 2)


@pytest.mark.skipif(django.VERSION < (6, 1), reason="Django's tasks pickle from 6.1 on")
def test_e20_tasks_and_results_survive_pickling() -> None:
    result = tasks.fail_always.enqueue("pickled")

    again = pickle.loads(pickle.dumps(result))

    assert isinstance(again.task, HorsiesTask)
    assert again.id == result.id


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
