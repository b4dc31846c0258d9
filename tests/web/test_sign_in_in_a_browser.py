"""The ways into the dashboard, typed and clicked in a real browser."""

from collections.abc import Iterator
from typing import Any

import pytest

from horsies.web import basic_viewers, hash_password, token_viewers
from horsies.web.access import OnlyReading
from horsies.web.credentials import local_token_viewers
from support.apps import good
from support.browser import NO_BROWSER, Browser, find_browser, open_browser
from support.web_server import serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),  # beside a whole test run a browser takes ten times as long
    pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER),
]
OPERATOR = "operator-token-0123456789"
READER = "reader-token-0123456789"


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with open_browser() as made:
        yield made


def sign_in(browser: Browser, token: str) -> None:
    browser.one("[name=token]").send_keys(token)
    browser.one("form button").click()


def test_tokens_let_in_and_out(driver: Any, shop: Any) -> None:
    viewers = token_viewers(OPERATOR, READER)
    with serving(shop.app, has_worker=False, authenticate=viewers) as url:
        browser = Browser(driver, url)
        browser.open("/queues")
        sign_in(browser, "guess")
        browser.until_shown("This token is not known.")
        sign_in(browser, READER)
        browser.until_shown("token read-only")
        browser.open("/queues")
        assert browser.all("main form, main .menu") == []
        browser.one(".tools form button").click()
        browser.until_at("/login")
        sign_in(browser, OPERATOR)
        browser.until_shown("token operator")
        browser.open("/queues")
        browser.menu("Limit …", "slow partner", limit="4")
        browser.until_shown("Queue default is limited to 4.")
        driver.set_window_size(390, 900)
        assert not browser.run("return document.documentElement.scrollWidth > innerWidth")
        driver.set_window_size(1400, 900)
        browser.one(".tools form button").click()
        browser.until_at("/login")
        browser.open("/queues")
        assert browser.one("main h1").text == "Sign in"

    (entry, *_) = good(shop.app.operations.audit(limit=1))
    good(shop.app.operations.limit_queue("default", None))
    assert (entry.done_by, entry.reason) == ("token operator", "slow partner")


def test_the_printed_link_lets_steer(driver: Any, shop: Any) -> None:
    viewers = local_token_viewers(OPERATOR)
    with serving(shop.app, has_worker=False, authenticate=viewers) as url:
        browser = Browser(driver, url)
        browser.open("/queues")
        browser.until_shown("open the link that horsies web printed at its start")
        assert browser.all("main form, main .menu") == []
        browser.open(f"/login?token={OPERATOR}")
        browser.one("main h1")
        address = driver.current_url
        browser.open("/queues")
        browser.menu("Limit …", "by the link", limit="4")
        browser.until_shown("Queue default is limited to 4.")
        driver.delete_all_cookies()
        driver.get("about:blank")  # lets the server end at once

    (entry, *_) = good(shop.app.operations.audit(limit=1))
    good(shop.app.operations.limit_queue("default", None))
    assert address == f"{url}/", "the token has left the address"
    assert (entry.done_by, entry.reason) == ("local user", "by the link")


def test_a_read_only_dashboard_takes_tokens(driver: Any, shop: Any) -> None:
    viewers = OnlyReading(token_viewers(OPERATOR))
    with serving(shop.app, has_worker=False, authenticate=viewers) as url:
        browser = Browser(driver, url)
        browser.open("/queues")
        sign_in(browser, OPERATOR)
        browser.until_shown("read-only")
        browser.open("/queues")

        assert browser.one("main h1").text == "Queues"
        assert browser.all("main form") == []
        driver.get("about:blank")  # lets the server end at once


def test_a_name_and_a_password_let_in(driver: Any, shop: Any) -> None:
    viewers = basic_viewers({"ann": hash_password("right")})
    with serving(shop.app, has_worker=False, authenticate=viewers) as url:
        Browser(driver, url.replace("//", "//ann:right@")).open("/tasks")
        browser = Browser(driver, url)
        browser.one("main h1")
        task_id = good(shop.app.tasks["rest"].send(1)).task_id
        browser.one(f'tr[data-key="{task_id}"]')
        browser.open(f"/tasks/{task_id}")
        browser.menu("Cancel …", "by ann")
        browser.until_shown("It is cancelled.")
        driver.get("about:blank")  # lets the server end at once

    (entry, *_) = good(shop.app.operations.audit(limit=1))
    assert (entry.done_by, entry.reason) == ("ann", "by ann")
    assert shop.db.status(task_id) == "CANCELLED"
