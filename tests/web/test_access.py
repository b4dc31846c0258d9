"""Who may see and who may steer, and what other sites and strangers get."""

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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
    credentials,
    hash_password,
    local_viewers,
    proxy_viewers,
    token_viewers,
)
from horsies.web.credentials import is_password, local_token_viewers
from horsies.web.pages import PAGES
from support.database import Database
from support.eventually import eventually_async
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
        re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: values[found[1]], route.path)
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

    async with browsing(shop.app, client=OUTSIDE, authenticate=local_viewers) as client:
        looked = [await client.get(path) for path in [*paths("GET", shop.ids), "/events"]]
        acted = [await client.post(path) for path in paths("POST", shop.ids)]

    assert {response.status_code for response in [*looked, *acted]} == {403}
    assert {response.text for response in looked} == {"You may not see this dashboard.\n"}
    assert len(looked) >= 8
    assert len(acted) >= 10
    assert state(shop.db) == before


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
async def test_what_a_proxy_hands_on_is_not_local(app: Horsies, header: str) -> None:
    async with browsing(app, authenticate=local_viewers) as client:
        response = await client.get("/workers", headers={header: "203.0.113.9"})

    assert response.status_code == 403


async def test_users_of_this_machine_look_but_do_not_steer(shop: Any) -> None:
    """So that strangers, whom a proxy without headers hands on, do not steer either."""
    before = state(shop.db)

    async with browsing(create_app(shop.app)) as client:
        page = await client.get("/queues")
        data = {"csrf": client.cookies["horsies_csrf"]}
        answers = [await client.post(path, data=data) for path in paths("POST", shop.ids)]

    assert page.status_code == 200
    assert "You may look but not steer. To let people steer, set `authenticate`" in page.text
    assert {answer.status_code for answer in answers} == {403}
    assert "You may look but not steer." in answers[0].text
    assert state(shop.db) == before


class TestPrintedLink:
    async def test_it_lets_users_of_this_machine_steer(self, shop: Any) -> None:
        async with browsing(shop.app, authenticate=local_token_viewers(OPERATOR)) as client:
            before = await client.get("/queues")
            opened = await client.get(f"/login?token={OPERATOR}")
            after = await client.get("/queues")
            limited = await post(client, "/queues/default/limit", limit="")

        assert 'method="post"' not in before.text
        assert "open the link that horsies web printed" in before.text
        assert 'href="/login"' in before.text
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        assert OPERATOR not in opened.headers["set-cookie"]
        assert "You may look but not steer" not in after.text
        assert limited.status_code == 303

    @pytest.mark.parametrize("token", ["guess", "%00", "%ff", OPERATOR[:-1]])
    async def test_a_wrong_one_is_refused(self, app: Horsies, token: str) -> None:
        async with browsing(app, authenticate=local_token_viewers(OPERATOR)) as client:
            opened = await client.get(f"/login?token={token}")
            page = await client.get("/queues")

        assert (opened.status_code, "set-cookie" in opened.headers) == (403, True)
        assert "horsies_session" not in client.cookies
        assert "You may look but not steer" in page.text

    async def test_strangers_see_nothing_without_it(self, app: Horsies) -> None:
        viewers = local_token_viewers(OPERATOR)
        async with browsing(app, client=OUTSIDE, authenticate=viewers) as client:
            response = await client.get("/queues")

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
        "cookie",
        [
            *("", "x", "99999999999.", "99999999999.deadbeef", "1.deadbeef", "١٢.aa"),
            *("²².aa", "99999999999.é", '"\\377.\\377"', "9" * 5_000 + ".aa"),
        ],
    )
    @pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
    async def test_made_up_sessions_are_refused(
        self, app: Horsies, cookie: str, encoding: str
    ) -> None:
        async with browsing(app, client=OUTSIDE, authenticate=token_viewers(OPERATOR)) as client:
            sent = {"cookie": f"horsies_session={cookie}".encode(encoding, "replace")}
            response = await client.get("/workers", headers=sent)

        assert response.status_code == 303

    def test_a_short_token_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least 16 characters"):
            token_viewers("secret")


class SlowChecks:
    """Stands in for the check of passwords; each waits in its thread until `end` is set."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()

    def is_password(self, password: str, stored: str) -> bool:
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        self.end.wait(60)
        with self._lock:
            self._now -= 1
        return is_password(password, stored)

    async def is_busy(self) -> bool:
        return self._now > 0


@contextmanager
def checking_slowly(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowChecks]:
    slow = SlowChecks()
    monkeypatch.setattr(credentials, "is_password", slow.is_password)
    yield slow
    slow.end.set()


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

    async def test_checks_hold_up_nobody_who_is_known(
        self, app: Horsies, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        viewers = basic_viewers({"ann": hash_password("right"), "bob": hash_password("right")})
        async with browsing(app, client=OUTSIDE, authenticate=viewers) as client:
            ann = httpx.BasicAuth("ann", "right")
            await client.get("/login", auth=ann)
            await client.get("/workers", auth=ann)
            with checking_slowly(monkeypatch) as slow:
                async with asyncio.TaskGroup() as group:
                    wrong = [
                        group.create_task(client.get("/workers", auth=httpx.BasicAuth("bob", "x")))
                        for _ in range(30)
                    ]
                    known = await client.get("/workers", auth=ann)
                    slow.end.set()

        answers = Counter(one.result().status_code for one in wrong)
        assert known.status_code == 200
        assert answers == {401: 2, 429: 28}, "few passwords are checked at once"

    async def test_a_flood_leaves_room_for_another_name(
        self, app: Horsies, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names = [f"user-{number}" for number in range(64)]
        viewers = basic_viewers(dict.fromkeys(names, hash_password("right")))
        async with browsing(app, client=OUTSIDE, authenticate=viewers) as client:
            with checking_slowly(monkeypatch) as slow:
                async with asyncio.TaskGroup() as group:
                    for _ in range(30):
                        group.create_task(client.get("/workers", auth=httpx.BasicAuth("bob", "x")))
                    others = [
                        group.create_task(
                            client.get("/workers", auth=httpx.BasicAuth(name, "right"))
                        )
                        for name in names
                    ]
                    await eventually_async(slow.is_busy)
                    slow.end.set()

        assert any(one.result().status_code == 200 for one in others)
        assert slow.most_at_once <= 2

    async def test_who_gives_nothing_costs_no_check(
        self, app: Horsies, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        viewers = basic_viewers({"ann": hash_password("right")})
        async with browsing(app, client=OUTSIDE, authenticate=viewers) as client:
            with checking_slowly(monkeypatch) as slow:
                response = await client.get("/workers")

        assert (response.status_code, slow.most_at_once) == (401, 0)

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


@pytest.mark.parametrize("names", [("ann", "mallory"), ("mallory", "ann"), ("ann", "")])
async def test_several_names_in_the_header_of_a_proxy_are_none(
    app: Horsies, names: tuple[str, str]
) -> None:
    viewers = proxy_viewers("X-Forwarded-User", ["10.0.0.7"])
    async with browsing(app, client=("10.0.0.7", 1), authenticate=viewers) as client:
        headers = [("x-forwarded-user", name) for name in names]
        response = await client.get("/workers", headers=headers)

    assert response.status_code == 403


@pytest.mark.parametrize(
    ("peer", "protos", "is_secure"),
    [
        ("10.0.0.7", ["https"], True),
        ("10.0.0.7", ["http"], False),
        ("10.0.0.7", ["https", "http"], False),
        ("10.0.0.7", [], False),
        ("203.0.113.9", ["https"], False),
    ],
)
async def test_cookies_are_secure_where_a_trusted_proxy_has_tls(
    shop: Any, peer: str, protos: list[str], is_secure: bool
) -> None:
    settings: Any = {"authenticate": token_viewers(OPERATOR), "trusted_proxies": ("10.0.0.7",)}
    async with browsing(shop.app, client=(peer, 1), **settings) as client:
        headers = [("x-forwarded-proto", proto) for proto in protos]
        sent = {"authorization": f"Bearer {OPERATOR}", "cookie": "horsies_csrf=" + "c" * 43}
        page = await client.get("/login", headers=headers)
        signed_in = await client.get(f"/login?token={OPERATOR}", headers=headers)
        client.cookies.clear()
        acted = await client.post(
            "/queues/default/limit", data={"csrf": "c" * 43}, headers=[*headers, *sent.items()]
        )

    cookies = [one.headers["set-cookie"].lower() for one in (page, signed_in, acted)]
    names = [one.partition("=")[0] for one in cookies]
    assert names == ["horsies_csrf", "horsies_session", "horsies_said"]
    assert ["secure" in one for one in cookies] == [is_secure] * 3


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


JUNK = ["é", "²", "\x7f", '"', '"\\ud800"', "[" * 5_000, "9" * 5_000, "{", "\\377"]


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: junk[:8])
@pytest.mark.parametrize("name", ["csrf", "said", "session", "theme"])
async def test_junk_in_cookies_changes_no_page(shop: Any, name: str, junk: str) -> None:
    async with browsing(shop.app) as client:
        cookie = f"horsies_{name}={junk}".encode("utf-8", "surrogatepass")
        page = await client.get("/queues", headers={"cookie": cookie})
        data = {"csrf": junk, "limit": "3"}
        acted = await client.post("/queues/default/limit", data=data, headers={"cookie": cookie})

    assert page.status_code == 200
    assert acted.status_code == 403
    assert name != "csrf" or "horsies_csrf" in page.headers["set-cookie"], "a sound one follows"


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "[", "é", "http://]:x", "\x7f"])
async def test_junk_in_the_origin_is_another_site(shop: Any, origin: str) -> None:
    async with browsing(shop.app) as client:
        csrf = await csrf_of(client)
        answer = await client.post(
            "/queues/default/limit", data={"csrf": csrf}, headers={"origin": origin.encode()}
        )

    assert answer.status_code == 403


@pytest.mark.parametrize("number", ["9" * 5_000, "9" * 30, "²", "-1", "0", "1e3", "٣" * 12])
async def test_odd_numbers_are_refused(shop: Any, number: str) -> None:
    task_id = shop.ids["waiting"]
    forms: dict[str, dict[str, str]] = {
        "/queues/default/limit": {"limit": number},
        "/tasks/review": {"do": "priority", "priority": number, "id": task_id},
        "/tasks/act": {"do": "priority", "priority": number, "id": task_id},
        f"/tasks/{task_id}/send": {"args": number, "kwargs": number},
        "/workflows/none/event": {"name": "n", "key": "k", "payload": number},
    }
    before = state(shop.db)[0]

    async with browsing(shop.app) as client:
        codes = {
            path: (await post(client, path, **form)).status_code for path, form in forms.items()
        }
        page = await client.get(f"/workflows/none?group={number}")

    assert codes["/queues/default/limit"] == 400
    assert {code for code in [*codes.values(), page.status_code] if code >= 500} == set()
    assert state(shop.db)[0] == before


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
