"""What operators do in the dashboard, and what becomes of it in the database."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from support.apps import good
from support.web import browsing, post


@pytest.fixture
async def client(shop: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with browsing(shop.app) as made:
        yield made


def waiting(shop: Any, count: int = 1, **options: Any) -> list[str]:
    """New tasks in a queue that is paused."""
    task = shop.app.tasks["rest"].with_options(**options)
    return [good(task.send(number)).task_id for number in range(count)]


def failed(shop: Any, **columns: Any) -> str:
    values = {"task_name": "explode", "status": "FAILED", "error_code": "BROKEN"}
    return str(shop.db.insert(**{**values, **columns}))


async def said(client: httpx.AsyncClient, answer: httpx.Response) -> str:
    """What the page that follows says was done."""
    assert answer.status_code == 303, answer.text
    page = await client.get(answer.headers["location"])
    return re.findall(r'role="status">([^<]+)<', page.text)[0]


async def test_cancel(shop: Any, client: httpx.AsyncClient) -> None:
    (task_id,) = waiting(shop)

    answer = await post(client, f"/tasks/{task_id}/cancel", reason="not needed")

    assert await said(client, answer) == "It is cancelled."
    assert shop.db.status(task_id) == "CANCELLED"


@pytest.mark.seed("S93")
async def test_requeue(shop: Any, client: httpx.AsyncClient) -> None:
    task_id = failed(shop)

    answer = await post(client, f"/tasks/{task_id}/requeue")

    assert await said(client, answer) == "It is back in its queue."
    assert shop.db.status(task_id) == "PENDING"


async def test_run_now(shop: Any, client: httpx.AsyncClient) -> None:
    (task_id,) = waiting(shop, delay=3600)

    answer = await post(client, f"/tasks/{task_id}/run-now")

    assert await said(client, answer) == "It is due now."
    assert shop.db.value("select enqueued_at <= now() from horsies_tasks where id = %s", task_id)


async def test_delete(shop: Any, client: httpx.AsyncClient) -> None:
    task_id = failed(shop)

    answer = await post(client, f"/tasks/{task_id}/delete")

    assert await said(client, answer) == f"Task {task_id} is deleted."
    assert shop.db.execute("select 1 from horsies_tasks where id = %s", task_id) == []


async def test_what_came_too_late_is_said(shop: Any, client: httpx.AsyncClient) -> None:
    answer = await post(client, f"/tasks/{shop.ids['expired']}/run-now")

    assert await said(client, answer) == "It does not wait any more."


async def test_run_again_with_the_same_arguments(shop: Any, client: httpx.AsyncClient) -> None:
    answer = await post(client, f"/tasks/{shop.ids['secret']}/rerun")

    new_id = answer.headers["location"].rpartition("/")[2]
    old, new = shop.db.task(shop.ids["secret"]), shop.db.task(new_id)
    assert (new["kwargs"], new["args"], new["rerun_of"]) == (old["kwargs"], old["args"], old["id"])


async def test_edited_arguments_are_checked_and_masked_ones_kept(
    shop: Any, client: httpx.AsyncClient
) -> None:
    path = f"/tasks/{shop.ids['secret']}/send"

    wrong = await post(client, path, args='["x"]', kwargs='{"card": "•••"}')
    malformed = await post(client, path, args="[", kwargs="{}")
    answer = await post(client, path, args="[8]", kwargs='{"card": "•••"}', reason="again")

    assert wrong.status_code == malformed.status_code == 400
    assert "valid integer" in wrong.text
    assert "args is no JSON" in malformed.text
    new_id = answer.headers["location"].rpartition("/")[2]
    row = shop.db.task(new_id)
    assert (row["task_name"], row["args"], row["kwargs"]) == (
        "charge",
        "[8]",
        '{"card":"4242-4242"}',
    )
    assert shop.db.value("select reason from horsies_audit order by id desc limit 1") == "again"


async def test_ticked_tasks_are_counted_then_changed(shop: Any, client: httpx.AsyncClient) -> None:
    ids = waiting(shop, 3)
    wanted = {"do": "cancel", "id": [*ids[:2], shop.ids["completed"]], "q": "queue:paused"}

    review = await post(client, "/tasks/review", **wanted)
    untouched = [shop.db.status(one) for one in ids]
    answer = await post(client, "/tasks/act", **wanted)

    assert "<strong data-count>2</strong>" in review.text
    assert untouched == ["PENDING"] * 3
    assert await said(client, answer) == "Cancelled: 2."
    assert [shop.db.status(one) for one in ids] == ["CANCELLED", "CANCELLED", "PENDING"]


@pytest.mark.parametrize(
    ("do", "fields", "column", "expected"),
    [
        ("priority", {"priority": "7"}, "priority", 7),
        ("cancel-running", {}, "status", "CANCELLED"),
        ("run-now", {}, "status", "PENDING"),
    ],
)
async def test_all_that_match_a_filter_are_changed(
    shop: Any,
    client: httpx.AsyncClient,
    do: str,
    fields: dict[str, str],
    column: str,
    expected: Any,
) -> None:
    ids = waiting(shop, 2, tags=[f"bulk-{do}"])
    wanted = {"do": do, "scope": "filter", "q": f"tag:bulk-{do}", **fields}

    review = await post(client, "/tasks/review", **wanted)
    await post(client, "/tasks/act", **wanted)

    assert "<strong data-count>2</strong>" in review.text
    assert [shop.db.task(one)[column] for one in ids] == [expected] * 2


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"do": "cancel"}, "Tick tasks first"),
        ({"do": "explode", "id": "x"}, "Choose what to do"),
        ({"do": "priority", "id": "x", "priority": "high"}, "A priority is a whole number"),
        (
            {"do": "priority", "id": "x", "priority": "101"},
            "A priority is a whole number from 1 to 100",
        ),
        (
            {"do": "priority", "id": "x", "priority": "-1"},
            "A priority is a whole number from 1 to 100",
        ),
        ({"do": "cancel", "scope": "filter", "q": "statu:x"}, "is no filter"),
        ({"do": "delete", "scope": "filter", "q": "status:pending"}, "Delete is for tasks"),
    ],
)
async def test_a_wrong_wish_says_what_is_wrong(
    client: httpx.AsyncClient, fields: dict[str, str], problem: str
) -> None:
    answer = await post(client, "/tasks/review", **fields)

    assert answer.status_code in (400, 404)
    assert problem in answer.text


async def test_queues_are_paused_resumed_and_limited(shop: Any, client: httpx.AsyncClient) -> None:
    path = "/queues/default"

    told = [
        await said(client, await post(client, f"{path}/{verb}", **fields))
        for verb, fields in (
            ("pause", {"reason": "deploy"}),
            ("pause", {}),
            ("resume", {}),
            ("resume", {}),
            ("limit", {"limit": "3"}),
        )
    ]
    cap = shop.db.value(
        "select max_concurrency from horsies_queue_controls where queue_name = 'default'"
    )
    freed = await said(client, await post(client, f"{path}/limit", limit=""))
    wrong = await post(client, f"{path}/limit", limit="many")

    assert told == [
        "Queue default is paused.",
        "Queue default was paused already.",
        "Queue default goes on.",
        "Queue default was not paused.",
        "Queue default is limited to 3.",
    ]
    assert (cap, freed) == (3, "Queue default is limited as configured.")
    assert (wrong.status_code, "A limit is a whole number" in wrong.text) == (400, True)


async def test_draining_nobody_is_refused(client: httpx.AsyncClient) -> None:
    answer = await post(client, "/workers/nobody/drain")

    assert answer.status_code == 404
    assert "names no living worker" in answer.text
