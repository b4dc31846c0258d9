"""What the pages of the dashboard show."""

import re
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from fastapi import FastAPI

from horsies import Horsies
from horsies.web import create_app
from horsies.web.spans import SPANS
from support.web import HOSTILE, browsing

PATHS = (
    "/",
    "/?span=5m",
    "/?span=30d&queue=default",
    "/tasks",
    "/tasks?q=status:failed",
    "/queues",
    "/queues?window=5m",
    "/workers",
    "/task?task_id={failed}",
    "/tasks/{completed}",
    "/tasks/{failed}",
    "/tasks/{secret}",
    "/tasks/{waiting}",
    "/tasks/{cancelled}",
    "/tasks/{expired}",
)
INLINE = re.compile(r"(?i)<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=\"|javascript:")


async def all_pages(client: httpx.AsyncClient, ids: dict[str, str]) -> dict[str, httpx.Response]:
    return {path: await client.get(path.format(**ids)) for path in PATHS}


async def test_pages_answer_without_inline_script_or_style(shop: Any) -> None:
    async with browsing(shop.app) as client:
        pages = await all_pages(client, shop.ids)

    assert {path for path, page in pages.items() if page.status_code != 200} == set()
    assert [path for path, page in pages.items() if INLINE.search(page.text)] == []
    for page in pages.values():
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
            "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        )


async def test_hostile_text_is_shown_as_text(shop: Any) -> None:
    async with browsing(shop.app) as client:
        pages = await all_pages(client, shop.ids)

    assert [path for path, page in pages.items() if HOSTILE in page.text] == []
    assert "&lt;script&gt;alert(" in pages["/tasks/{failed}"].text


async def test_links_stay_below_the_path_of_the_mount(shop: Any) -> None:
    api = FastAPI()
    api.mount("/ops/queue", create_app(shop.app))

    async with browsing(api) as client:
        for path in PATHS:
            page = await client.get(f"/ops/queue{path.format(**shop.ids)}")
            links = re.findall(r'(?:href|src|action|data-suggest)="(/[^"]*)"', page.text)

            assert page.status_code == 200
            assert len(links) > 5
            assert [link for link in links if not link.startswith("/ops/queue/")] == []


async def test_assets_are_served_by_the_package_for_ever(app: Horsies) -> None:
    async with browsing(app) as client:
        page = (await client.get("/")).text
        sheet = await client.get(re.findall(r'href="([^"]+style\.css)"', page)[0])
        script = await client.get(re.findall(r'src="([^"]+main\.js)"', page)[0])

    assert sheet.headers["content-type"].startswith("text/css")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "immutable" in sheet.headers["cache-control"]
    assert not re.search(r"https?://(?!www\.w3\.org)", page + sheet.text)


async def test_a_part_is_sent_only_if_it_differs(app: Horsies) -> None:
    async with browsing(app) as client:
        part = await client.get("/workers", headers={"x-part": "1"})
        again = await client.get("/workers", headers={"x-part": part.headers["x-mark"]})

    assert "<html" not in part.text
    assert "<h1>Workers</h1>" in part.text
    assert (again.status_code, again.text) == (204, "")


WRONG = {
    "/nowhere": (404, "There is no such page."),
    "/tasks/ffff": (404, "There is no task ffff"),
    "/workers/nobody": (404, "No worker nobody was seen"),
    "/?span=2y": (400, "choose one of 5m, 30m"),
    "/queues?window=x": (400, "choose one of 5m, 1h, 24h"),
    "/tasks?q=statu:x": (400, "is no filter; allowed are status:"),
    "/tasks?q=status:gone": (400, "is no status; allowed are"),
}


async def test_a_wrong_address_says_what_is_wrong(app: Horsies) -> None:
    async with browsing(app) as client:
        for path, (code, said) in WRONG.items():
            response = await client.get(path)

            assert response.status_code == code
            assert said in response.text


async def test_overview_shows_charts_queues_failures_and_the_database(shop: Any) -> None:
    async with browsing(shop.app) as client:
        text = (await client.get("/?span=5m")).text

    for title in ("Throughput", "Error rate", "Start latency", "Oldest waiting", "Database"):
        assert title in text
    assert '<path class="line tone-good"' in text
    assert ">explode</a>" in text  # a top failing task
    assert "paused" in text


@pytest.mark.parametrize("span", SPANS)
async def test_the_overview_is_of_the_time_that_is_chosen(shop: Any, span: str) -> None:
    async with browsing(shop.app) as client:
        text = (await client.get(f"/?span={span}")).text

    recently = "6h" if span in {"24h", "7d", "30d"} else span
    assert f"per minute, last {recently}" in text
    assert f'span={span}" aria-current="true">{span}</a>' in text
    assert f"ended-since:{recently}" in unquote(text)


async def test_tasks_are_filtered_and_paged(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horsies.web.pages.tasks._PAGE", 2)
    async with browsing(shop.app) as client:
        tagged = (await client.get("/tasks?q=tag:vip")).text
        first = (await client.get("/tasks")).text
        older = re.findall(r'rel="next" href="([^"]+)"', first)[0].replace("&amp;", "&")
        second = (await client.get(older)).text

    def ids(text: str) -> list[str]:
        return re.findall(r'<tr data-key="([^"]+)"', text)

    assert ids(tagged) == [shop.ids["waiting"]]
    assert len(ids(first)) == len(ids(second)) == 2
    assert not set(ids(first)) & set(ids(second))


OFFERED = {
    "sta": "status:",
    "status:fai": "status:failed",
    "status:failed,exp": "status:failed,expired",
    "task:expl": "task:explode",
    "queue:pau": "queue:paused",
    "tag:": "tag:vip",
    "error:UNH": "error:UNHANDLED_EXCEPTION",
    "since:": "since:1h",
}


async def test_filters_are_completed_while_typed(app: Horsies) -> None:
    async with browsing(app) as client:
        for typed, offered in OFFERED.items():
            found = (await client.get("/suggestions", params={"word": typed})).json()

            assert offered in [one["word"] for one in found]


async def test_a_task_page_tells_everything(shop: Any) -> None:
    async with browsing(shop.app) as client:
        failed = (await client.get(f"/tasks/{shop.ids['failed']}")).text
        waiting = (await client.get(f"/tasks/{shop.ids['waiting']}")).text
        completed = (await client.get(f"/tasks/{shop.ids['completed']}")).text

    assert "UNHANDLED_EXCEPTION" in failed
    assert "Traceback (most recent call last)" in failed
    assert "attempt 1 began on" in failed
    assert '<progress max="1" value="0.25"' in failed
    assert f"horsies requeue {shop.ids['failed']}" in failed
    assert "Queue paused was paused by ann" in waiting
    assert "moving house" in waiting
    assert re.search(r'<th scope="row">a</th><td class="quiet mono">int</td>', completed)
    assert "<pre>5</pre>" in completed
    assert "app.tasks[&#39;add&#39;].send(a=2, b=3)" in completed


async def test_secrets_are_masked_by_name_and_by_annotation(shop: Any) -> None:
    path = f"/tasks/{shop.ids['secret']}"
    async with browsing(shop.app) as client:
        text = (await client.get(path)).text
        status = (await client.get(f"/task?type=json&task_id={shop.ids['secret']}")).json()

    assert "4242-4242" not in text
    assert "hunter2" not in text
    assert "tok-77" not in text
    assert text.count("•••") >= 3
    assert status["output"] == {"paid": "7", "receipt_token": "•••"}


async def test_arguments_and_results_can_be_hidden(shop: Any) -> None:
    path = f"/tasks/{shop.ids['completed']}"
    async with browsing(shop.app, hide_arguments=("a", "B"), hide_results=True) as client:
        text = (await client.get(path)).text
        status = (await client.get(f"/task?type=json&task_id={shop.ids['completed']}")).json()

    assert "send(a=&#39;•••&#39;, b=&#39;•••&#39;)" in text
    assert "<pre>5</pre>" not in text
    assert status["output"] == "•••"


class TestStatus:
    """docs/contract/monitoring.md §4."""

    @pytest.mark.seed("S76", "S90")
    async def test_a_completed_task_shows_its_output(self, shop: Any) -> None:
        async with browsing(shop.app) as client:
            response = await client.get(f"/task?task_id={shop.ids['completed']}&type=json")

        assert response.headers["content-type"] == "application/json"
        assert response.json() == {
            "id": shop.ids["completed"],
            "status": "Completed",
            "state": "COMPLETED",
            "output": 5,
            "error": None,
            "worker_pid": None,
            "log": None,
        }

    @pytest.mark.seed("S75", "S77")
    async def test_a_failed_task_shows_its_error_and_no_pid(self, shop: Any) -> None:
        async with browsing(shop.app) as client:
            shown = (await client.get(f"/task?task_id={shop.ids['failed']}&type=json")).json()

        assert (shown["state"], shown["output"], shown["worker_pid"]) == ("FAILED", None, None)
        assert "UNHANDLED_EXCEPTION" in shown["error"]
        assert "Traceback (most recent call last)" in shown["error"]

    @pytest.mark.seed("S90")
    async def test_the_same_as_a_page(self, shop: Any) -> None:
        async with browsing(shop.app) as client:
            response = await client.get(f"/task?task_id={shop.ids['failed']}")

        assert response.headers["content-type"].startswith("text/html")
        assert "UNHANDLED_EXCEPTION" in response.text

    @pytest.mark.parametrize(("query", "code"), [("task_id=nobody", 404), ("", 400)])
    async def test_what_is_not_there(self, app: Horsies, query: str, code: int) -> None:
        async with browsing(app) as client:
            as_json = await client.get(f"/task?type=json&{query}")
            as_page = await client.get(f"/task?{query}")

        assert (as_json.status_code, as_page.status_code) == (code, code)
        assert list(as_json.json()) == ["error"]
