"""A real browser for tests: Debian's chromium without a window, driven by selenium.

`with open_browser() as browser: browser.get(url)`. Where there is none, `find_browser()` is `None`
and tests say so loudly by being skipped with `NO_BROWSER`.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from support.eventually import eventually

NO_BROWSER = "!!! no chromium with its driver: install it with apt-get install chromium-driver"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
SCREENSHOTS = "HORSIES_SCREENSHOTS"  # a directory to keep pictures in, for the documentation


def find_browser() -> tuple[str, str] | None:
    """The paths of a browser and of its driver, if both are there."""
    browser = next((path for name in _NAMES if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def open_browser(width: int = 1400, height: int = 900) -> Iterator[webdriver.Chrome]:
    """A browser of its own, with an empty profile."""
    found = find_browser()
    assert found is not None, NO_BROWSER
    options = Options()
    options.binary_location = found[0]
    for argument in (
        "--headless=new",
        "--no-sandbox",  # root may not have one
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--window-size={width},{height}",
    ):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=Service(found[1]))
    try:
        yield browser
    finally:
        browser.quit()


def keep_picture(browser: webdriver.Chrome, name: str) -> None:
    """Store what the browser shows, if someone asked for pictures."""
    if directory := os.environ.get(SCREENSHOTS):
        browser.save_screenshot(str(Path(directory) / f"{name}.png"))


class Browser:
    """What a person does with the dashboard."""

    def __init__(self, driver: Any, url: str) -> None:
        self.driver = driver
        self._url = url
        permissions = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
        driver.execute_cdp_cmd("Browser.grantPermissions", permissions)

    def open(self, path: str) -> None:
        self.driver.get(self._url + path)

    def one(self, selector: str) -> Any:
        return eventually(lambda: self.driver.find_element(By.CSS_SELECTOR, selector), within=60)

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def link(self, text: str) -> Any:
        """A link by what it says."""
        return eventually(lambda: self.driver.find_element(By.LINK_TEXT, text), within=60)

    def follow(self, text: str, path: str) -> None:
        """Click on a link by what it says, and wait for the page it leads to."""
        self.link(text).click()
        self.until_at(path)
        self.until_loaded()

    def press(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def until_shown(self, text: str) -> None:
        eventually(lambda: text in self.one("body").text, within=60)

    def until_at(self, path: str) -> None:
        eventually(lambda: path in self.driver.current_url, within=60)

    def until_loaded(self) -> None:
        """A page that a key or a click led to listens to keys when all of it is loaded."""
        eventually(lambda: self.run("return document.readyState") == "complete", within=60)

    def menu(self, title: str, reason: str = "", **fields: str) -> None:
        """Open a menu by its title, fill in its form and send it."""
        form = eventually(lambda: self._opened(title), within=60)
        for name, value in {"reason": reason, **fields}.items():
            field = form.find_element(By.NAME, name)
            field.clear()
            field.send_keys(value)
        form.find_element(By.TAG_NAME, "button").click()

    def _opened(self, title: str) -> Any:
        """The form behind a button; while a menu is open, updates wait."""
        opener = next(one for one in self.all("summary.button") if one.text == title)
        menu = opener.find_element(By.XPATH, "..")
        if menu.get_attribute("open") is None:
            opener.click()
        return menu.find_element(By.TAG_NAME, "form")

    def hover(self, element: Any) -> None:
        ActionChains(self.driver).move_to_element(element).perform()

    def run(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    def clipboard(self) -> str:
        """What the last copy put there."""
        script = "navigator.clipboard.readText().then(arguments[0])"
        return str(self.driver.execute_async_script(script))
