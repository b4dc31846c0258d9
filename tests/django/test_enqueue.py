"""E-06 to E-09: enqueue on Django's own connection."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import transaction
from django_simple_queue.utils import create_task

from horsies import EnqueuedEvent
from horsies.contrib.django import HorsiesBackend, enqueue_on_commit
from horsies.contrib.django.compat import task_backends
from horsies.contrib.django.models import Task
from horsies.contrib.django.project import broker_config
from support.django_project.shop import tasks
from support.django_project.shop.models import Note
from support.eventually import eventually


def count_from_outside(task_id: str) -> int:
    with psycopg.connect(broker_config().database_url) as other:
        found = other.execute("select count(*) from horsies_tasks where id = %s", [task_id])
        return int((found.fetchone() or [0])[0])


@pytest.mark.acceptance("E-06")
def test_e06_a_task_is_invisible_until_the_commit(start_worker: Callable[..., Any]) -> None:
    start_worker("--processes", "1", "--interval", "60")

    # The first task of a child also imports the project.
    tasks.write.enqueue("warm")
    eventually(lambda: Note.objects.filter(text="warm").exists(), within=20)

    with transaction.atomic():
        result = tasks.write.enqueue("in a transaction")
        before = count_from_outside(result.id)
        unclaimed = Task.objects.get(pk=result.id).status
    # The next poll is at least 36 s away: only a notification can be this quick.
    eventually(lambda: Note.objects.filter(text="in a transaction").exists(), within=1)

    assert before == 0
    assert unclaimed == "PENDING"


@pytest.mark.acceptance("E-07")
@pytest.mark.django_db(transaction=True)
def test_e07_rollback_leaves_nothing_and_on_commit_waits(
    django_capture_on_commit_callbacks: Any, committed: None
) -> None:
    with transaction.atomic():
        tasks.write.enqueue("never")
        transaction.set_rollback(True)
    with transaction.atomic():
        enqueue_on_commit(tasks.write, "later")
        inside = Task.objects.count()

    assert inside == 0
    assert [row.args for row in Task.objects.all()] == ['["later"]']


@pytest.mark.acceptance("E-07")
@pytest.mark.django_db
def test_e07_on_commit_is_captured(django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        enqueue_on_commit(tasks.write, "captured")

    assert len(callbacks) == 1
    assert Task.objects.count() == 1


@pytest.mark.acceptance("E-08")
@pytest.mark.django_db
def test_e08_enqueue_is_one_query(
    django_assert_num_queries: Any, django_assert_max_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        tasks.add.enqueue(1, b=2)

    backend: HorsiesBackend = task_backends["default"]
    with django_assert_max_num_queries(4):
        results = backend.enqueue_many([(tasks.add, (n, n), {}) for n in range(1000)])
    assert len({result.id for result in results}) == 1000
    assert Task.objects.count() == 1001


@pytest.mark.acceptance("E-09")
@pytest.mark.django_db(transaction=True)
async def test_e09_an_async_view_enqueues_and_reads(async_client: Any, committed: None) -> None:
    answer = await async_client.get("/shop/add")

    found = await tasks.add.aget_result(answer.json()["id"])
    many = await task_backends["default"].aenqueue_many([(tasks.add, (n, n), {}) for n in (1, 2)])
    assert answer.json() == {"args": [2, 3], "status": "READY", "id": found.id}
    assert [(await tasks.add.aget_result(one.id)).args for one in many] == [[1, 1], [2, 2]]


@pytest.mark.django_db(transaction=True)
def test_hooks_hear_of_what_is_enqueued(
    told_of: Callable[..., list[Any]], committed: None, settings: Any
) -> None:
    told = told_of("enqueued")
    with transaction.atomic():
        inside = tasks.add.enqueue(1, 2)
    old = create_task("support.django_project.shop.jobs.nothing", {})
    settings.HORSIES = {"ENQUEUE": "autocommit"}
    apart = tasks.add.using(queue_name="low").enqueue(1, 2)

    assert told == [
        EnqueuedEvent(inside.id, tasks.add.module_path, "default", True),
        EnqueuedEvent(str(old), "support.django_project.shop.jobs.nothing", "default", False),
        EnqueuedEvent(apart.id, tasks.add.module_path, "low", False),
    ]
