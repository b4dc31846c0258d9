"""What a newcomer meets after the first task: sends that fail, waits that end, plain exceptions."""

import asyncio
import inspect
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from horsies import (
    Cancellation,
    ConfigurationError,
    Horsies,
    Retry,
    RetryPolicy,
    SendFailed,
    TaskDefinitionError,
    TaskFailed,
    WaitTimedOut,
)
from horsies.cli import cancel, requeue
from horsies.results import waiting
from support.apps import bad, working
from support.database import Database
from support.eventually import eventually


@dataclass
class Item:
    price: float
    note: object = None


@dataclass
class Order:
    items: list[Item]


@pytest.fixture
def plain(new_app: Callable[..., Horsies], monkeypatch: pytest.MonkeyPatch) -> Horsies:
    # An ended wait asks why only for a moment, in which a busy server may not answer.
    monkeypatch.setattr(waiting, "_EXPLAIN_S", 10.0)
    return new_app(allow_plain_returns=True)


async def test_plain_exceptions_decide_codes_and_retries(plain: Horsies, db: Database) -> None:
    tries: list[str] = []

    @plain.task("pay")
    async def pay() -> int:
        raise TaskFailed("CARD_DECLINED", "no money left", data={"cents": 1})

    @plain.task("ask", retry_policy=RetryPolicy.fixed([60], auto_retry_for=["RETRY"]))
    async def ask() -> int:
        tries.append("ask")
        if len(tries) == 1:
            raise Retry("not yet", after=0.01)
        return 7

    @plain.task("read", retry_policy=RetryPolicy.fixed([0.01], retry_on=[OSError], jitter=False))
    async def read() -> int:
        if "read" not in tries:
            tries.append("read")
            raise ConnectionResetError("gone")
        return 8

    sent = [await task.send_or_raise_async() for task in (pay, ask, read)]
    async with working(plain):
        with pytest.raises(TaskFailed, match="CARD_DECLINED: no money left") as caught:
            await sent[0].result_async(20_000)
        values = [await handle.result_async(20_000) for handle in sent[1:]]

    assert values == [7, 8]
    assert (caught.value.code, caught.value.data) == ("CARD_DECLINED", {"cents": 1})
    assert db.task(sent[1].task_id)["retry_count"] == 1


def test_scripts_get_values_or_exceptions(plain: Horsies) -> None:
    @plain.task("job")
    def job(n: int) -> int:
        return n

    with pytest.raises(SendFailed, match="VALIDATION_FAILED: parameter 'n'") as refused:
        job.send_or_raise("many")  # type: ignore[arg-type]
    handle = job.send_or_raise(1)
    with pytest.raises(WaitTimedOut) as unfinished:
        handle.result(timeout_ms=1)

    assert refused.value.error.code == refused.value.code
    assert isinstance(unfinished.value, TimeoutError)
    text = "it is still PENDING; no live worker serves queue 'default'"
    assert text in str(unfinished.value)


def test_a_worker_that_has_just_stopped_serves_no_queue(plain: Horsies, db: Database) -> None:
    @plain.task("job")
    def job() -> int:
        return 1

    handle = job.send_or_raise()
    db.insert(
        "horsies_worker_states",
        worker_id="w",
        queues=["default"],
        holds_lock=True,
        worker_started_at=datetime.now(UTC),
        hostname="host",
        **dict.fromkeys(("pid", "processes", "max_claim_batch", "max_claim_per_worker"), 1),
    )
    stopped = str(handle.get(timeout_ms=1).err)
    db.execute("select pg_advisory_lock(horsies_lock_key('worker:w'))")
    alive = str(handle.get(timeout_ms=1).err)

    assert "no live worker" in stopped
    assert "no live worker" not in alive


def test_a_task_has_defaults_for_its_sends(plain: Horsies, db: Database) -> None:
    @plain.task(
        "ship",
        priority=3,
        tags=["shop"],
        delay=60,
        unique_key=lambda order, fast=False: f"o{order}",
    )
    def ship(order: int, fast: bool = False) -> int:
        """Ship an order."""
        return order

    first = ship.send_or_raise(7)
    same = ship.send_or_raise(7)
    other = ship.with_options(priority=9).send(8, fast=True).unwrap()
    many = ship.send_many([ship.bind(9), {"order": 10}, (7,)]).unwrap()

    row = db.task(first.task_id)
    assert (row["priority"], row["tags"], row["unique_key"]) == (3, ["shop"], "o7")
    assert (same.task_id, same.created) == (first.task_id, False)
    assert db.task(other.task_id)["priority"] == 9
    assert db.task(other.task_id)["unique_key"] == "o8"
    assert [handle.created for handle in many] == [True, True, False]
    assert row["enqueued_at"] > row["sent_at"]


def test_a_key_that_cannot_be_made_is_a_failed_send(plain: Horsies) -> None:
    @plain.task("ship", unique_key=lambda order: str(1 // order))
    def ship(order: int) -> int:
        return order

    assert "unique_key raised ZeroDivisionError" in bad(ship.send(0)).message
    assert "missing a required argument" in bad(ship.send()).message  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "options", [{"priority": 0}, {"tags": [""]}, {"delay": -1}, {"unique_key": "constant"}], ids=str
)
def test_wrong_defaults_are_refused(plain: Horsies, options: Any) -> None:
    with pytest.raises(TaskDefinitionError, match=next(iter(options))):
        _define(plain, options)

    assert plain.list_tasks() == []


def _define(app: Horsies, options: Any) -> None:
    def job() -> int:
        return 1

    app.task("job", job, **options)


def test_help_shows_the_signature_of_the_task(plain: Horsies) -> None:
    @plain.task("ship")
    def ship(order: int, *, fast: bool = False) -> int:
        """Ship an order."""
        return order

    assert str(inspect.signature(ship.send)).startswith("(order: int, *, fast: bool = False)")
    assert str(inspect.signature(ship.schedule)).startswith("(delay: int, /, order: int, *")
    stored = "Store the task; a worker runs it as soon as one is free."
    assert inspect.getdoc(ship.send) == f"{stored}\n\nShip an order."
    assert inspect.iscoroutinefunction(ship.send_async)


def test_a_failed_send_is_logged_once(plain: Horsies, caplog: pytest.LogCaptureFixture) -> None:
    @plain.task("job")
    def job(n: int) -> int:
        return n

    job.send("many")  # type: ignore[arg-type]
    job.send_many([(1, 2)])
    with plain.suppressed_sends():
        job.send(1)

    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 2
    assert lines[0].startswith("task job was not sent: VALIDATION_FAILED: parameter 'n'")
    assert lines[1].startswith("task job was not sent: VALIDATION_FAILED: call 0: too many")


def test_a_value_that_cannot_be_stored_is_named_by_its_path(plain: Horsies) -> None:
    @plain.task("ship")
    def ship(order: Order, extra: Any = None) -> int:
        return len(order.items)

    order = Order([Item(1.0), Item(2.0, note=object())])

    wrong_type = bad(ship.send({"items": [{"price": 1}, {"price": "free"}]}))  # type: ignore[arg-type]
    unknown = bad(ship.send(order))
    infinite = bad(ship.send(Order([]), extra={"rates": [1.0, float("inf")]}))

    @dataclass
    class Part:  # only the annotation can write it: nobody could import it by its name
        weight: float

    @plain.task("pack")
    def pack(parts: list[Part]) -> int:
        return len(parts)

    local = bad(pack.send([Part(1.0), Part(float("nan"))]))

    assert "order.items[1].price: " in wrong_type.message
    assert "order.items[1].note: " in unknown.message
    assert "extra.rates[1]: " in infinite.message
    assert "parts[1].weight: " in local.message


def test_large_arguments_warn_at_the_sender_by_name(
    new_app: Callable[..., Horsies], caplog: pytest.LogCaptureFixture
) -> None:
    app = new_app(allow_plain_returns=True, payload_warn_bytes=100)

    @app.task("ship")
    def ship(order: int, label: str) -> int:
        return order

    ship.send(1, label="x" * 200)

    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("arguments of task ship take 215 bytes, most of them 'label'")


def test_cancel_tells_what_it_found(plain: Horsies, db: Database) -> None:
    @plain.task("job")
    def job() -> int:
        return 1

    handle = job.send_or_raise()
    running = job.send_or_raise()
    db.execute("update horsies_tasks set status = 'RUNNING' where id = %s", running.task_id)

    found = [
        handle.cancel(),
        handle.cancel(),
        running.cancel(),
        running.cancel(running=True),
        plain.handle("none").cancel(),
    ]

    assert [one.unwrap() for one in found] == [True, False, False, True, False]
    assert [getattr(one, "found", None) for one in found] == [
        Cancellation.WAITING,
        Cancellation.ENDED,
        Cancellation.RUNNING,
        Cancellation.RUNNING,
        Cancellation.UNKNOWN,
    ]


def test_commands_reach_only_the_tasks_of_their_app(
    tmp_path: Path, database_url: str, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORSIES_DATABASE_URL", database_url)
    (tmp_path / "own_shop.py").write_text(
        "from horsies import *\napp = Horsies(AppConfig(allow_plain_returns=True))\n"
        "@app.task('own')\ndef own() -> int:\n    return 1\n"
    )
    module = str(tmp_path / "own_shop.py")
    for name in ("own", "foreign"):
        db.insert(task_name=name)
        db.insert(
            task_name=name, id=f"{name}-failed", status="FAILED", failed_at=db.value("select now()")
        )

    own = CliRunner().invoke(cancel.command, [module, "--yes"])
    refused = CliRunner().invoke(cancel.command, [module, "--yes", "--task-name", "foreign"])
    foreign = CliRunner().invoke(cancel.command, [module, "--yes", "--all-apps"])
    gone = CliRunner().invoke(cancel.command, [module, "--id", "none"])
    requeued = CliRunner().invoke(requeue.command, [module, "status:failed", "--yes"])
    left = db.status("foreign-failed")
    all_apps = ["status:failed", "--yes", "--all-apps"]
    others = CliRunner().invoke(requeue.command, [module, *all_apps])

    assert "1 task(s) cancelled" in own.output
    assert (refused.exit_code, "add --all-apps" in refused.output) == (1, True)
    assert "1 task(s) cancelled" in foreign.output
    assert (gone.exit_code, gone.output) == (1, "Error: there is no task none\n")
    assert "1 task(s) requeued" in requeued.output
    assert left == "FAILED"
    assert "1 task(s) requeued" in others.output
    assert (db.status("own-failed"), db.status("foreign-failed")) == ("PENDING", "PENDING")


def test_a_wait_without_a_worker_says_so(
    plain: Horsies, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "_TELL_AFTER_S", 0.0)

    @plain.task("job")
    def job() -> int:
        return 1

    handle = job.send_or_raise()
    waiter = threading.Thread(target=handle.get, args=(60_000,))
    waiter.start()
    eventually(lambda: caplog.records, within=30)
    handle.cancel().unwrap()
    waiter.join()

    (line,) = [record.getMessage() for record in caplog.records]
    assert line.endswith("it is still PENDING; no live worker serves queue 'default'")


async def test_a_blocking_wait_in_a_loop_warns(
    plain: Horsies, caplog: pytest.LogCaptureFixture
) -> None:
    @plain.task("job")
    def job() -> int:
        return 1

    handle = job.send_or_raise()
    handle.get(timeout_ms=0)
    quiet = len(caplog.records)
    handle.get(timeout_ms=1)
    handle.get(timeout_ms=1)

    assert quiet == 0
    (line,) = [record.getMessage() for record in caplog.records]
    assert "use `await handle.get_async()`" in line


def test_discover_tasks_takes_a_list(plain: Horsies) -> None:
    with pytest.raises(ConfigurationError, match="takes a list of modules, not a text"):
        plain.discover_tasks("tasks")  # type: ignore[arg-type]


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "horsies", "--version"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0
    assert done.stdout.startswith("horsies ")


async def test_an_app_closes_with_its_block(database_url: str, db: Database) -> None:
    async with Horsies(database_url, allow_plain_returns=True) as app:

        @app.task("job")
        def job() -> int:
            return 1

        await job.send_or_raise_async()

    others = (
        "select count(*) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )
    await asyncio.to_thread(eventually, lambda: db.value(others) == 0)
    with Horsies(database_url) as again:
        assert again.get_broker().ping().is_ok()


async def test_names_that_a_peer_knows_are_left_to_it(
    new_app: Callable[..., Horsies], db: Database
) -> None:
    """As in a rolling release: no task fails because an old worker met it first."""
    old, new = new_app(allow_plain_returns=True), new_app(allow_plain_returns=True)

    @old.task("known")
    async def known(n: int) -> int:
        return n

    @new.task("added")
    async def added(n: int) -> int:
        return n

    async with working(new), working(old):
        handles = [await added.send_or_raise_async(n) for n in range(20)]
        values = [await handle.result_async(20_000) for handle in handles]
        nobodys = db.insert(task_name="removed", enqueued_at=datetime.now(UTC))
        await asyncio.to_thread(eventually, lambda: db.status(nobodys) == "FAILED")

    assert values == list(range(20))
    assert db.value("select max(retry_count) from horsies_tasks") == 0


async def test_names_that_a_worker_does_not_know_are_left(
    new_app: Callable[..., Horsies], db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    app = new_app(allow_plain_returns=True, unknown_tasks="leave")

    @app.task("known")
    async def known(n: int) -> int:
        return n

    now = datetime.now(UTC)
    foreign = [db.insert(task_name="renamed", enqueued_at=now) for _ in range(30)]
    handle = await known.send_or_raise_async(1)
    async with working(app):
        value = await handle.result_async(20_000)
        await asyncio.to_thread(eventually, lambda: "renamed (30)" in caplog.text)

    assert value == 1
    assert {db.status(task_id) for task_id in foreign} == {"PENDING"}
