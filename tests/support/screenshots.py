"""`make screenshots`: every page of the dashboard of a busy shop, light and dark, wide and phone.

`python -m support.screenshots DIRECTORY` runs the demo for a minute and takes the pictures.
"""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from selenium import webdriver

from support.browser import open_browser
from support.command import COMMAND
from support.eventually import eventually

BUSY_S = 60
SIZES = {"wide": (1280, 800), "phone": (390, 844)}
THEMES = ("light", "dark")
# A name and the page; {…} is the first address on a list that matches.
PAGES = {
    "overview": "/?span=5m",
    "tasks": "/tasks",
    "task-failed": "{/tasks?q=status:failed task:charge_card}",
    "task-running": "{/tasks?q=status:running task:build_report}",
    "task-waiting": "{/tasks?q=status:pending queue:legacy}",
    "queues": "/queues",
    "workers": "/workers",
    "worker": "{/workers}",
    "workflows": "/workflows",
    "workflow": "{/workflows}",
    "schedules": "/schedules",
    "schedule": "/schedules/refresh stock",
    "failures": "/failures",
    "maintenance": "/maintenance",
    "nothing-found": "/tasks?q=task:nobody_knows",
    "not-there": "/tasks/00000000-0000-7000-8000-000000000000",
}
# A busy machine takes its time until a card has failed three times.
WITHIN_S = 300


@contextmanager
def busy_shop() -> Iterator[str]:
    """The link that a demo prints, which lets one steer, when it has run for a while."""
    words = [COMMAND, "demo", "--web", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        link = next(
            found[0] for line in process.stdout if (found := re.search(r"http://\S+", line))
        )
        try:
            time.sleep(BUSY_S)
            yield link
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def address_of(base: str, page: str) -> str:
    """The address of a page; of one in a list, the first link below it, once there is one."""
    if not page.startswith("{"):
        return base + page
    path = page.strip("{}")
    below = re.escape(path.partition("?")[0])
    link = re.compile(
        rf'<tr data-key="[^"]+" data-row>.*?href="({below}/[0-9a-f-]{{36}})"', re.DOTALL
    )
    found = eventually(
        lambda: link.search(httpx.get(base + path, timeout=30).text), within=WITHIN_S
    )
    return base + found[1]


def shoot(browser: webdriver.Chrome, address: str, path: Path, size: tuple[int, int]) -> None:
    """One picture, as tall as the page up to a limit."""
    width, height = size
    browser.set_window_size(width, height)
    browser.get(address)
    tall = eventually(lambda: browser.execute_script("return document.body.scrollHeight"))
    browser.set_window_size(width, max(height, min(tall + 140, 2_000)))
    time.sleep(0.4)  # the first live update
    browser.save_screenshot(str(path))
    print(path)


def main() -> None:
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    with busy_shop() as link, open_browser() as browser:
        browser.get(link)  # signs in
        base = link.partition("/login")[0]
        for name, page in PAGES.items():
            for theme in THEMES:
                address = address_of(base, page)
                browser.get(base)
                browser.add_cookie({"name": "horsies_theme", "value": theme})
                for size, measures in SIZES.items():
                    shoot(browser, address, directory / f"{name}-{theme}-{size}.png", measures)


if __name__ == "__main__":
    main()
