"""`horsies.testing`: what users have in their own tests."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import anyio
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from horsies import (
    Horsies,
    IntervalSchedule,
    RetryPolicy,
    ScheduleConfig,
    TaskFailed,
    TaskSchedule,
    WorkflowDefinition,
    WorkflowSchedule,
)
from horsies.codes import OperationalErrorCode, OutcomeCode, RetrievalCode
from horsies.testing import ManualWorker, Sends, crash
from horsies.testing.databases import Databases
from support.database import connect

Inline = Callable[[Horsies], Sends]
Manual = Callable[[Horsies], ManualWorker]


class Billing(WorkflowDefinition[Any]):
    """A workflow for schedules. Its building takes longer than a pass of the scheduler waits."""

    name = "billing"
    definition_key = "test.billing"

    @classmethod
    def build_with(cls, app: Any) -> Any:
        threading.Event().wait(0.4)
        node = app.tasks["charge"].node(node_id="charge")(order=8)
        return app.workflow("billing", [node], definition_key="test.billing")


HOURLY = ScheduleConfig(
    schedules=[
        TaskSchedule(
            name="bill",
            task_name="charge",
            pattern=IntervalSchedule(hours=1),
            kwargs={"order": 7},
        ),
        WorkflowSchedule(
            name="flow", definition_key=Billing.definition_key, pattern=IntervalSchedule(hours=1)
        ),
    ]
)


@pytest.fixture
def app(request: pytest.FixtureRequest) -> Horsies:
    settings = getattr(request, "param", {})
    app = Horsies("postgresql://nobody@127.0.0.1:1/nowhere", allow_plain_returns=True, **settings)
    policy = RetryPolicy.fixed([60, 3600], auto_retry_for=["BUSY", "WORKER_CRASHED"], jitter=False)

    @app.task("charge", retry_policy=policy)
    def charge(order: int, cents: int = 100) -> str:
        if cents == 0:
            raise TaskFailed("NOTHING_TO_PAY", "0 cents")
        if cents < 0:
            raise TaskFailed("BUSY")
        return f"{order}: {cents}"

    @app.task("mail")
    async def mail(to: str) -> str:
        await asyncio.sleep(0)
        charge.send(order=1)
        return to

    return app


@pytest.fixture
def worker(horsies_worker: Manual, app: Horsies) -> ManualWorker:
    return horsies_worker(app)


def test_inline_tasks_run_at_their_send(app: Horsies, horsies_inline: Inline) -> None:
    sends = horsies_inline(app)
    charge = app.tasks["charge"]

    assert charge.send_or_raise(42).result() == "42: 100"
    assert app.tasks["mail"].send_or_raise("me").result() == "me"
    failed = charge.send_or_raise(1, cents=0).get().err_value
    assert (failed.error_code, failed.message) == ("NOTHING_TO_PAY", "0 cents")
    assert [handle.result() for handle in charge.send_many([(1,), (2,)]).unwrap()] == [
        "1: 100",
        "2: 100",
    ]
    assert [sent.task_name for sent in sends] == [
        "charge", "mail", "charge", "charge", "charge", "charge",
    ]  # fmt: skip


def test_inline_errors_are_those_that_a_worker_stores(
    app: Horsies, horsies_inline: Inline, horsies_worker: Manual
) -> None:
    @app.task("divide", exception_mapper={ZeroDivisionError: "DIVIDED"})
    def divide(by: int) -> set[float]:
        if by > 1:
            raise TaskFailed("TOO_LARGE", "too large", data={"by": by})
        return cast("set[float]", {1 // by} if by == 0 else "not a set")

    worker = horsies_worker(app)
    sent = [divide.send_or_raise(by) for by in (0, 1, 2)]
    worker.run_until_idle()
    stored = [_steady(handle.get(0).err_value) for handle in sent]
    horsies_inline(app)
    inline = [_steady(divide.send_or_raise(by).get().err_value) for by in (0, 1, 2)]

    assert [error["error_code"] for error in inline][::2] == ["DIVIDED", "TOO_LARGE"]
    assert inline == stored


def _steady(error: Any) -> dict[str, Any]:
    """An error without its traceback, which names who has called the function."""
    found: dict[str, Any] = error.model_dump(mode="json")
    if found["exception"]:
        found["exception"].pop("traceback")
    return found


async def test_inline_works_in_an_event_loop(app: Horsies, horsies_inline: Inline) -> None:
    horsies_inline(app)

    handle = await app.tasks["mail"].send_or_raise_async("me")
    blocking = app.tasks["mail"].send_or_raise("you")

    assert await handle.result_async() == "me"
    assert blocking.result() == "you"


def test_inline_works_from_threads(app: Horsies, horsies_inline: Inline) -> None:
    sends = horsies_inline(app)
    threads = [threading.Thread(target=app.tasks["charge"].send, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(sent.arguments["order"] for sent in sends) == [0, 1, 2, 3]


def test_inline_retries_by_the_policy(app: Horsies, horsies_inline: Inline) -> None:
    horsies_inline(app)
    charge = app.tasks["charge"]

    with crash(charge):
        recovered = charge.send_or_raise(1)
    with crash(charge, attempt=3):
        handle = charge.send_or_raise(1, cents=-1)

    assert recovered.result() == "1: 100"
    assert handle.get().err_value.error_code is OperationalErrorCode.WORKER_CRASHED


def test_recorded_sends_do_not_run(app: Horsies, horsies_sends: Inline) -> None:
    sends = horsies_sends(app)
    charge = app.tasks["charge"]

    handle = charge.with_options(delay=5, priority=3).send(42).unwrap()

    sent = sends.assert_sent(charge, order=42)
    sends.assert_sent("charge", times=1, cents=100)
    sends.assert_not_sent(charge, order=43)
    assert (sent.delay_s, sent.priority) == (5, 3)
    assert handle.get().err_value.error_code is RetrievalCode.RESULT_NOT_READY
    with pytest.raises(AssertionError) as caught:
        sends.assert_sent(charge, order=43)
    assert str(caught.value) == (
        "charge(order=43) was not sent; sent was:\n  charge(order=42, cents=100)"
    )
    with pytest.raises(AssertionError, match=r"charge\(order=42, cents=100\) was sent"):
        sends.assert_not_sent(charge, order=42)
    sends.clear()
    sends.assert_nothing_sent()


def test_a_send_in_a_transaction_is_recorded_beside_it(
    app: Horsies, horsies_sends: Inline, horsies_database_url: str
) -> None:
    sends = horsies_sends(app)
    engine = create_engine(horsies_database_url.replace("postgresql:", "postgresql+psycopg:"))

    with engine.connect() as connection, connection.begin() as transaction:
        # A session that joins the test's transaction, as SQLAlchemy's guide has it.
        with Session(connection, join_transaction_mode="create_savepoint") as session:
            app.tasks["charge"].with_options(connection=session).send(42).unwrap()
            session.commit()
        transaction.rollback()
    engine.dispose()

    assert sends.assert_sent("charge", order=42, times=1).arguments["cents"] == 100


def test_a_manual_worker_runs_what_is_due(app: Horsies, worker: ManualWorker) -> None:
    handles = [app.tasks["charge"].send_or_raise(n) for n in range(3)]

    first = worker.run_once()
    rest = worker.run_until_idle()

    assert (first, rest) == (1, 2)
    assert [handle.result(0) for handle in handles] == ["0: 100", "1: 100", "2: 100"]
    worker.sends.assert_sent("charge", times=3)


async def test_a_manual_worker_runs_in_an_event_loop(app: Horsies, worker: ManualWorker) -> None:
    handle = await app.tasks["mail"].send_or_raise_async("me")

    assert await worker.run_until_idle_async() == 2
    assert await handle.result_async(0) == "me"


def test_a_moved_clock_brings_delays_and_retries(app: Horsies, worker: ManualWorker) -> None:
    charge = app.tasks["charge"]
    late = charge.schedule(3600, 1).unwrap()
    busy = charge.send_or_raise(2, cents=-1)

    now = worker.run_until_idle()
    worker.clock.move(minutes=2)
    retried = worker.run_until_idle()
    worker.clock.move(hours=2)
    last = worker.run_until_idle()

    assert (now, retried, last) == (1, 1, 2)
    assert late.result(0) == "1: 100"
    assert busy.get(0).err_value.error_code == "BUSY"


def test_a_moved_clock_passes_deadlines(app: Horsies, worker: ManualWorker) -> None:
    soon = worker.clock.now + timedelta(minutes=1)
    handle = app.tasks["charge"].with_options(good_until=soon).send(1).unwrap()
    worker.clock.move(minutes=5)

    assert worker.run_until_idle() == 0
    assert handle.get(0).err_value.error_code is OutcomeCode.TASK_EXPIRED


@pytest.mark.parametrize("app", [{"schedule": HOURLY}], indirect=True, ids=["hourly"])
def test_a_moved_clock_brings_schedules(app: Horsies, worker: ManualWorker) -> None:
    before = worker.run_until_idle()
    worker.clock.move(hours=1, minutes=1)
    after = worker.run_until_idle()
    again = worker.run_until_idle()

    (sent,) = app.schedules.history("bill").unwrap()
    assert (before, after, again) == (0, 2, 0)
    assert app.handle(sent.task_id or "").result(0) == "7: 100"


def test_a_crash_is_recorded_and_retried(app: Horsies, worker: ManualWorker) -> None:
    charge = app.tasks["charge"]
    handle = charge.send_or_raise(1)

    with crash(charge):
        worker.run_until_idle()
    worker.clock.move(minutes=2)
    worker.run_until_idle()

    info: Any = handle.info(include_attempts=True).unwrap()
    assert [attempt.outcome for attempt in info.attempts] == ["COMPLETED", "WORKER_FAILURE"]
    assert handle.result(0) == "1: 100"


def test_a_database_is_fresh_for_each_test(horsies_database_url: str) -> None:
    database = connect(horsies_database_url)

    assert database.value("select count(*) from horsies_tasks") == 0
    database.connection.close()


def test_inline_works_with_anyio(app: Horsies, horsies_inline: Inline) -> None:
    horsies_inline(app)

    async def main() -> str:
        handle = await app.tasks["mail"].send_or_raise_async("me")
        value: str = await handle.result_async()
        return value

    assert anyio.run(main) == "me"


def test_a_manual_worker_works_with_anyio_and_from_a_thread(
    app: Horsies, worker: ManualWorker
) -> None:
    async def main() -> int:
        await app.tasks["mail"].send_or_raise_async("me")
        return await worker.run_once_async() + await anyio.to_thread.run_sync(worker.run_until_idle)

    assert anyio.run(main) == 2


DJANGO = """
import sys
from urllib.parse import parse_qs, urlsplit
from django.conf import settings

parts = urlsplit(sys.argv[1])
settings.configure(DATABASES={"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": parts.path[1:],
    "HOST": parse_qs(parts.query).get("host", [parts.hostname])[0], "USER": parts.username or "",
    "PORT": parse_qs(parts.query).get("port", [parts.port or ""])[0]}})
import django
django.setup()
from django.db import connection
from django.test import TestCase
from horsies import Horsies
from horsies.testing import inline

app = Horsies("postgresql://nobody@127.0.0.1:1/nowhere", allow_plain_returns=True)

@app.task("charge")
def charge(order: int) -> int:
    return order

class CheckoutTests(TestCase):
    def test_checkout(self):
        with inline(app) as sends:
            connection.cursor().execute("select 1")
            handle = charge.with_options(connection=connection).send_or_raise(42)
            self.assertEqual(handle.result(), 42)
        sends.assert_sent(charge, order=42)

from unittest import TextTestRunner, defaultTestLoader
suite = defaultTestLoader.loadTestsFromTestCase(CheckoutTests)
sys.exit(not TextTestRunner().run(suite).wasSuccessful())
"""


def test_it_works_inside_a_test_case_of_django(horsies_database_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DJANGO, horsies_database_url],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


def test_a_database_that_a_test_has_changed_is_not_used_again(horsies_databases: Databases) -> None:
    with horsies_databases.clone() as first:
        database = connect(first)
        database.insert(task_name="left behind")
        database.connection.close()
    with horsies_databases.clone() as second:
        database = connect(second)
        assert database.value("select count(*) from horsies_tasks") == 0
        database.execute("create table mine (id int)")
        database.connection.close()
    with horsies_databases.clone() as third:
        pass

    assert first == second
    assert third != second
