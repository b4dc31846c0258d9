"""A real browser for tests: Debian's chromium without a window, driven by selenium.

`with open_browser() as browser: browser.get(url)`. Where there is none, `find_browser()` is `None`
and tests say so loudly by being skipped with `NO_BROWSER`.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

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
