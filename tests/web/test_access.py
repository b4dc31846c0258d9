"""Who may see and who may steer, and what other sites and strangers get."""

import re
from typing import Any

import httpx
import pytest
from starlette.requests import HTTPConnection

from horsies import Horsies
from horsies.web import (
    Role,
    Viewer,
    basic_viewers,
    create_app,
    hash_password,
    proxy_viewers,
    token_viewers,
)
from horsies.web.pages import PAGES
from support.database import Database
from support.web import OUTSIDE, browsing, csrf_of, post

OPERATOR = "operator-token-0123456789"
READER = "reader-token-0123456789"


def paths(method: str, ids: dict[str, str]) -> list[str]:
    """The address of every route that takes this method, sign-in left out."""
    values = {
        "task_id": ids["waiting"],
        "name": "paused",
        "worker_id": "nobody",
        "workflow_id": "none",
    }
    return [
        re.sub(r"\{(\w+)(?::path)?\}", lambda found: values[found[1]], route.path)
        for route in PAGES
        if method in (route.methods or ()) and route.path not in ("/login", "/logout")
    ]


def state(db: Database) -> list[Any]:
    """All that actions could change."""
    return [
        db.execute("select id, status, priority, enqueued_at from horsies_tasks order by id"),
        db.execute("select * from horsies_queue_controls order by queue_name"),
        db.execute("select * from horsies_worker_drains"),
        db.value("select count(*) from horsies_audit"),
    ]


async def test_strangers_see_and_change_nothing(shop: Any) -> None:
    before = state(shop.db)

    async with browsing(shop.app, client=OUTSIDE) as client:
        looked = [await client.get(path) for path in [*paths("GET", shop.ids), "/events"]]
        acted = [await client.post(path) for path in paths("POST", shop.ids)]

    assert {response.status_code for response in [*looked, *acted]} == {403}
    assert {response.text for response in looked} == {"You may not see this dashboard.\n"}
    assert len(looked) >= 8
    assert len(acted) >= 10
    assert state(shop.db) == before


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
async def test_what_a_proxy_hands_on_is_not_local(app: Horsies, header: str) -> None:
    async with browsing(app) as client:
        response = await client.get("/workers", headers={header: "203.0.113.9"})

    assert response.status_code == 403


async def test_unknown_host_names_are_refused(app: Horsies) -> None:
    async with browsing(app, allowed_hosts=("dash.example.org",)) as client:
        codes = {
            host: (await client.get("/workers", headers={"host": host})).status_code
            for host in (
                "localhost:8600",
                "127.0.0.1",
                "[::1]:8600",
                "dash.example.org:8600",
                "evil.example.com",
                "localhost.evil.example.com",
                "",
            )
        }

    assert codes == {
        "localhost:8600": 200,
        "127.0.0.1": 200,
        "[::1]:8600": 200,
        "dash.example.org:8600": 200,
        "evil.example.com": 421,
        "localhost.evil.example.com": 421,
        "": 421,
    }


FOREIGN = {
    "no token": ({}, {}),
    "wrong token": ({"csrf": "guess"}, {}),
    "other origin": ({"csrf": "right"}, {"origin": "https://evil.example.com"}),
    "null origin": ({"csrf": "right"}, {"origin": "null"}),
    "cross-site": ({"csrf": "right"}, {"sec-fetch-site": "cross-site"}),
    "same-site": ({"csrf": "right"}, {"sec-fetch-site": "same-site"}),
}


@pytest.mark.parametrize("case", FOREIGN)
async def test_forms_of_other_sites_are_refused(shop: Any, case: str) -> None:
    fields, headers = FOREIGN[case]
    before = state(shop.db)

    async with browsing(shop.app) as client:
        right = await csrf_of(client)
        data = {name: right if value == "right" else value for name, value in fields.items()}
        answers = [
            await client.post(path, data=data, headers=headers) for path in paths("POST", shop.ids)
        ]

    assert {answer.status_code for answer in answers} == {403}
    assert state(shop.db) == before


async def test_nothing_changes_by_get(shop: Any) -> None:
    before = state(shop.db)

    async with browsing(shop.app) as client:
        codes = {
            (await client.get(path)).status_code
            for path in paths("POST", shop.ids)
            if path not in ("/tasks/review", "/tasks/act")  # they read as ids of tasks
        }

    assert codes <= {404, 405}, "a name with a slash may be asked for"
    assert state(shop.db) == before


async def test_readers_look_but_do_not_steer(shop: Any) -> None:
    before = state(shop.db)

    async with browsing(shop.app, authenticate=lambda _: Viewer("ann", Role.READER)) as client:
        page = await client.get(f"/tasks/{shop.ids['waiting']}")
        csrf = client.cookies["horsies_csrf"]
        answers = [await client.post(path, data={"csrf": csrf}) for path in paths("POST", shop.ids)]

    assert page.status_code == 200
    assert "read-only" in page.text
    assert 'method="post"' not in page.text
    assert {answer.status_code for answer in answers} == {403}
    assert state(shop.db) == before


async def test_a_host_application_decides_who_is_who(app: Horsies) -> None:
    async def signed_in(connection: HTTPConnection) -> Viewer | None:
        name = connection.cookies.get("user")
        return Viewer(name, Role.OPERATOR) if name else None

    async with browsing(app, client=OUTSIDE, authenticate=signed_in) as client:
        stranger = await client.get("/workers")
        client.cookies.set("user", "ann")
        known = await client.get("/workers")

    assert (stranger.status_code, known.status_code) == (403, 200)
    assert ">ann<" in known.text


class TestToken:
    async def test_signing_in(self, app: Horsies) -> None:
        viewers = token_viewers(OPERATOR, READER)
        async with browsing(app, client=OUTSIDE, authenticate=viewers) as client:
            asked = await client.get("/workers")
            csrf = await csrf_of(client, "/login")
            wrong = await client.post("/login", data={"csrf": csrf, "token": "guess"})
            right = await client.post("/login", data={"csrf": csrf, "token": READER})
            page = await client.get("/workers")
            out = await client.post("/logout", data={"csrf": csrf})
            after = await client.get("/workers")

        assert (asked.status_code, asked.headers["location"]) == (303, "/login")
        assert (wrong.status_code, right.status_code) == (403, 303)
        assert "not known" in wrong.text
        assert "httponly" in right.headers["set-cookie"].lower()
        assert READER not in right.headers["set-cookie"]
        assert (page.status_code, "token read-only" in page.text) == (200, True)
        assert (out.status_code, after.status_code) == (303, 303)

    async def test_programs_send_it_in_a_header(self, app: Horsies) -> None:
        headers = {"authorization": f"Bearer {OPERATOR}"}
        async with browsing(app, client=OUTSIDE, authenticate=token_viewers(OPERATOR)) as client:
            good = await client.get("/task?type=json&task_id=x", headers=headers)
            bad = await client.get("/workers", headers={"authorization": "Bearer nonsense"})

        assert (good.status_code, bad.status_code) == (404, 303)

    @pytest.mark.parametrize(
        "cookie", ["", "x", "99999999999.", "99999999999.deadbeef", "1.deadbeef", "١٢.aa"]
    )
    async def test_made_up_sessions_are_refused(self, app: Horsies, cookie: str) -> None:
        async with browsing(app, client=OUTSIDE, authenticate=token_viewers(OPERATOR)) as client:
            sent = {"cookie": f"horsies_session={cookie}".encode()}
            response = await client.get("/workers", headers=sent)

        assert response.status_code == 303

    def test_a_short_token_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least 16 characters"):
            token_viewers("secret")


class TestBasic:
    @pytest.mark.parametrize(
        ("name", "password", "code"),
        [("ann", "right", 200), ("ann", "wrong", 401), ("bob", "right", 401), ("", "", 401)],
    )
    async def test_names_and_passwords(
        self, app: Horsies, name: str, password: str, code: int
    ) -> None:
        viewers = basic_viewers({"ann": hash_password("right")})
        async with browsing(app, client=OUTSIDE, authenticate=viewers) as client:
            codes = [
                (await client.get("/workers", auth=httpx.BasicAuth(name, password))).status_code
                for _ in range(2)
            ]

        assert codes == [code, code]

    @pytest.mark.parametrize("header", ["Basic", "Basic !!!", "Bearer x", "Basic /w=="])
    async def test_nonsense_is_refused(self, app: Horsies, header: str) -> None:
        viewers = basic_viewers({"ann": hash_password("right")})
        async with browsing(app, client=OUTSIDE, authenticate=viewers) as client:
            response = await client.get("/workers", headers={"authorization": header})

        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Basic ")

    def test_a_password_that_is_not_hashed_is_refused(self) -> None:
        with pytest.raises(ValueError, match="--hash-password"):
            basic_viewers({"ann": "plain"})


@pytest.mark.parametrize(
    ("peer", "header", "code"),
    [
        ("10.0.0.7", "ann", 200),
        ("10.0.0.7", "", 403),
        ("203.0.113.9", "ann", 403),
        ("127.0.0.1", "ann", 403),
    ],
)
async def test_only_a_trusted_proxy_names_users(
    app: Horsies, peer: str, header: str, code: int
) -> None:
    viewers = proxy_viewers("X-Forwarded-User", ["10.0.0.0/24"])
    async with browsing(app, client=(peer, 1), authenticate=viewers) as client:
        response = await client.get("/workers", headers={"x-forwarded-user": header})

    assert response.status_code == code


async def test_who_and_why_are_kept(shop: Any) -> None:
    viewer = Viewer("ann@example.org", Role.OPERATOR)
    async with browsing(shop.app, authenticate=lambda _: viewer) as client:
        await post(client, "/queues/default/limit", limit="9", reason="the partner is slow")
        await post(client, "/queues/default/limit", limit="")

    (entry, *_) = shop.db.execute(
        "select done_by, action, target, reason from horsies_audit where reason is not null"
        " order by id desc limit 1"
    )
    assert entry == {
        "done_by": "ann@example.org",
        "action": "limit",
        "target": "queue default",
        "reason": "the partner is slow",
    }


HOSTILE_QUERIES = (
    "q=' or 1=1 --",
    "q=task:'; drop table horsies_tasks; --",
    "q=kwargs.x=\"'); select 1",
    "q=queue:%00",
    "q=task:%25_*",
    "q=" + "status:failed " * 500,
    "q=status:failed&before=' or 1=1",
    "before=%00",
    "q=since:99999999999999d",
    "q=since:999999w",
)


async def test_injected_filters_are_harmless(shop: Any) -> None:
    before = shop.db.value("select count(*) from horsies_tasks")

    async with browsing(shop.app) as client:
        codes = {
            query: (await client.get(f"/tasks?{query}")).status_code for query in HOSTILE_QUERIES
        }

    assert {query: code for query, code in codes.items() if code >= 500} == {}
    assert shop.db.value("select count(*) from horsies_tasks") == before


@pytest.mark.parametrize(
    "path",
    [
        "../access.py",
        "..%2faccess.py",
        "%2e%2e/access.py",
        "....//access.py",
        "/etc/passwd",
        "%00",
    ],
)
async def test_files_outside_the_assets_are_not_served(app: Horsies, path: str) -> None:
    served = create_app(app)
    root = f"/static/{served.state.site.version}/"

    async with browsing(served) as client:
        response = await client.get(root + path)

    assert response.status_code == 404


async def test_a_large_form_is_refused(shop: Any) -> None:
    async with browsing(shop.app) as client:
        answer = await post(client, "/tasks/review", q="x" * 2**21)

    assert answer.status_code == 413
