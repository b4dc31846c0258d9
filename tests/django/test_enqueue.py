"""E-06 to E-09: enqueue on Django's own connection."""

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import transaction

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


def test_e06_a_task_is_invisible_until_the_commit(start_worker: Callable[..., Any]) -> None:
    start_worker("--processes", "1", "--interval", "60")

    with transaction.atomic():
        result = tasks.write.enqueue("in a transaction")
        before = count_from_outside(result.id)
        unclaimed = Task.objects.get(pk=result.id).status
    # The next poll is at least 36 s away: only a notification can be this quick.
    eventually(lambda: Note.objects.filter(text="in a transaction").exists(), within=10)

    assert before == 0
    assert unclaimed == "PENDING"


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


@pytest.mark.django_db
def test_e07_on_commit_is_captured(django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        enqueue_on_commit(tasks.write, "captured")

    assert len(callbacks) == 1
    assert Task.objects.count() == 1


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


@pytest.mark.django_db(transaction=True)
async def test_e09_async_calls_work_in_a_coroutine(committed: None) -> None:
    result = await tasks.add.aenqueue(2, 3)
    found = await tasks.add.aget_result(result.id)
    await result.arefresh()

    assert asyncio.get_running_loop().is_running()
    assert found.args == [2, 3]
    assert result.status == "READY"
