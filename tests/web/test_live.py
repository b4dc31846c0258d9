"""Live updates: pages hear of changes, and many of them cost the database no more than one."""

import asyncio
import re
from time import monotonic
from typing import Any

import pytest

from horsies.web import create_app
from horsies.web.reads import Reads
from support.apps import good
from support.traffic import counted
from support.web import browsing, make_shop

VIEWERS = 50
PAGES = ("/", "/tasks", "/queues", "/workers", "/workflows", "/schedules", "/failures")


class Asked:
    """A question that counts how often it is asked, and can be held up."""

    def __init__(self) -> None:
        self.count = 0
        self.may_answer = asyncio.Event()

    async def __call__(self) -> int:
        self.count += 1
        await self.may_answer.wait()
        return self.count


async def test_those_who_ask_at_once_share_one_answer() -> None:
    reads, asked = Reads(tick_s=60), Asked()

    async with asyncio.TaskGroup() as group:
        answers = [group.create_task(reads.get("x", asked)) for _ in range(VIEWERS)]
        await asyncio.sleep(0)
        asked.may_answer.set()

    assert {task.result() for task in answers} == {1}
    assert asked.count == 1


async def test_if_the_one_who_asks_goes_away_the_next_asks() -> None:
    reads, asked = Reads(tick_s=60), Asked()
    first = asyncio.create_task(reads.get("x", asked))
    second = asyncio.create_task(reads.get("x", asked))
    await asyncio.sleep(0)

    first.cancel()
    asked.may_answer.set()

    assert await second == 2


async def test_an_old_answer_is_asked_anew() -> None:
    reads, asked = Reads(tick_s=0), Asked()
    asked.may_answer.set()

    assert [await reads.get("x", asked) for _ in range(2)] == [1, 2]
    assert [await reads.get("x", asked, age_s=60) for _ in range(2)] == [2, 2]


async def test_a_change_is_seen_within_the_tick_that_tells_of_it() -> None:
    reads, asked = Reads(tick_s=60), Asked()
    early = asyncio.create_task(reads.get("x", asked))
    await asyncio.sleep(0)

    reads.heard_of_change()
    late = [asyncio.create_task(reads.get("x", asked)) for _ in range(VIEWERS)]
    asked.may_answer.set()

    assert await early == 1
    assert {await one for one in late} == {2}
    assert await reads.get("x", asked, age_s=120) == 2


async def test_old_questions_are_forgotten() -> None:
    reads, asked = Reads(tick_s=0), Asked()
    asked.may_answer.set()

    for number in range(2_000):
        await reads.get(number, asked)

    assert len(reads._answers) <= 500


async def test_a_change_is_told_within_a_tick_and_not_oftener(shop: Any) -> None:
    changes = create_app(shop.app, tick_rate=2).state.site.changes
    stream = changes.stream()
    opened = await anext(stream)
    began_at = monotonic()

    for number in range(20):
        good(await shop.app.tasks["rest"].send_async(number))
    told = [await asyncio.wait_for(anext(stream), 4)]
    while monotonic() < began_at + 1.2:
        good(await shop.app.tasks["rest"].send_async(0))
        told.append(await asyncio.wait_for(anext(stream), 4))
    took = monotonic() - began_at
    await stream.aclose()

    assert opened == b"retry: 2000\ndata: open\n\n"
    assert set(told) == {b"data: changed\n\n"}
    assert len(told) <= 2 * took + 2  # two a second, one at the start and one at the end


async def test_fifty_viewers_cost_the_database_as_much_as_one(
    database_url: str,
) -> None:
    costs = [await statements_for(count, database_url) for count in (1, VIEWERS)]

    assert costs[0] == costs[1]
    assert costs[0]["/tasks"] <= 2, "the list and its count"
    assert sum(costs[0].values()) <= 40


async def statements_for(viewers: int, database_url: str) -> dict[str, int]:
    """How many statements each page costs when so many open it at once."""
    costs: dict[str, int] = {}
    with counted(database_url) as (traffic, url):
        app = make_shop(url)
        async with browsing(app, tick_rate=0.2) as client:
            await client.get("/task?task_id=none")  # the schema, the connections
            for path in PAGES:
                traffic.clear()
                async with asyncio.TaskGroup() as group:
                    for _ in range(viewers):
                        group.create_task(client.get(path))
                costs[path] = sum(traffic.statements.values())
        await app.close_async()
    return costs


@pytest.mark.parametrize("path", ["/", "/workers"], ids=["overview", "workers"])
async def test_pages_say_so_while_the_database_is_away(shop: Any, path: str) -> None:
    app = make_shop("postgresql://nobody@127.0.0.1:1/nowhere?connect_timeout=1")
    async with browsing(app) as client:
        response = await client.get(path)
    await app.close_async()

    assert response.status_code == 503
    assert "The database does not answer" in response.text
    assert re.search(r"<main[^>]* data-live", response.text)


async def test_a_form_that_found_no_database_does_not_reload_itself(shop: Any) -> None:
    app = make_shop("postgresql://nobody@127.0.0.1:1/nowhere?connect_timeout=1")
    async with browsing(app) as client:
        await client.get("/queues")
        csrf = client.cookies["horsies_csrf"]
        response = await client.post("/queues/default/pause", data={"csrf": csrf})
    await app.close_async()

    assert response.status_code == 503
    assert "Go back and try again." in response.text
    assert not re.search(r"<main[^>]* data-live", response.text)


@pytest.mark.parametrize("tick_rate", [0, 0.01, 21])
def test_a_tick_rate_out_of_range_is_refused(shop: Any, tick_rate: float) -> None:
    with pytest.raises(ValueError, match="tick_rate"):
        create_app(shop.app, tick_rate=tick_rate)


async def test_a_slow_reader_hears_what_was_told_meanwhile(shop: Any) -> None:
    changes = create_app(shop.app).state.site.changes
    first, second = changes.stream(), changes.stream()
    for stream in (first, second):
        await anext(stream)

    good(await shop.app.tasks["rest"].send_async(1))
    # One after the other: the second is not there when the first is told.
    told = [await asyncio.wait_for(anext(stream), 4) for stream in (first, second)]

    assert told == [b"data: changed\n\n"] * 2
    await first.aclose()
    await second.aclose()
