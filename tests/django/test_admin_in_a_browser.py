"""The admin is clicked through in a real browser: log in, look, enqueue, cancel, status page."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from horsies.contrib.django.models import Task
from horsies.contrib.django.project import app
from horsies.contrib.django.testing import run_one
from support.browser import NO_BROWSER, find_browser, keep_picture, open_browser
from support.django_project.shop import tasks
from support.eventually import eventually

pytestmark = pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER)


def choose(browser: Any, action: str, *ids: str, reason: str = "") -> str:
    """Tick rows, choose an action, say why, press Go; what the page says then."""
    for task_id in ids:
        browser.find_element(By.CSS_SELECTOR, f"input[value='{task_id}']").click()
    Select(browser.find_element(By.NAME, "action")).select_by_visible_text(action)
    browser.find_element(By.NAME, "reason").send_keys(reason)
    go = browser.find_element(By.CSS_SELECTOR, ".actions [type=submit]")
    go.click()
    until_gone(go)
    found = eventually(lambda: browser.find_element(By.CLASS_NAME, "messagelist"), within=20)
    return str(found.text)


def until_gone(element: Any) -> None:
    """Until the page that had this element is left."""

    def is_stale() -> bool:
        try:
            element.is_enabled()
        except StaleElementReferenceException:
            return True
        return False

    eventually(is_stale, within=20)


@pytest.mark.slow
def test_the_admin_is_clicked_through(live_server: Any, committed: None) -> None:
    User.objects.create_superuser("admin", password="admin")
    done, failed = tasks.add.enqueue(1, 2), tasks.fail.enqueue("no such horse")
    run_one(done.id)
    run_one(failed.id)
    waiting = tasks.write.using(queue_name="low").enqueue("later")
    with open_browser(width=1750) as browser:
        browser.get(f"{live_server.url}/admin/horsies/task/")
        browser.find_element(By.NAME, "username").send_keys("admin")
        browser.find_element(By.NAME, "password").send_keys("admin")
        browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()
        eventually(lambda: browser.find_element(By.ID, "result_list"), within=20)
        keep_picture(browser, "django-admin-tasks")
        browser.find_element(By.PARTIAL_LINK_TEXT, failed.id[:13]).click()
        eventually(lambda: browser.find_element(By.CLASS_NAME, "field-shown_error"), within=20)
        detail = browser.find_element(By.ID, "content").text
        keep_picture(browser, "django-admin-task")
        browser.get(f"{live_server.url}/admin/horsies/task/")
        enqueued = choose(browser, "Enqueue", failed.id, waiting.id)
        keep_picture(browser, "django-admin-enqueued")
        cancelled = choose(browser, "Cancel", waiting.id, reason="sold out")
        browser.get(f"{live_server.url}/horsies/tasks/{done.id}")
        page = browser.find_element(By.TAG_NAME, "body").text
        keep_picture(browser, "django-status-page")

    assert "ValueError: no such horse" in detail
    assert "1 task was successfully enqueued." in enqueued
    assert "1 task was skipped." in enqueued
    assert "1 task was cancelled or asked to end." in cancelled
    assert Task.objects.get(pk=failed.id).status == "PENDING"
    assert Task.objects.get(pk=waiting.id).status == "CANCELLED"
    assert "Completed" in page
    cancel, enqueue = app.operations.audit().unwrap()
    assert (cancel.done_by, cancel.action, cancel.reason) == ("admin", "cancel", "sold out")
    assert (enqueue.done_by, enqueue.action) == ("admin", "requeue")
