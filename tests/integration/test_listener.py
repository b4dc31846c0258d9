"""The listener's thread: when it starts anew, how it waits, what it leaves behind."""

import subprocess
import sys
import threading
import time
from typing import Any

import psutil
import psycopg
import pytest

from horsies import Horsies
from horsies.database.listener import Listener
from horsies.database.statement import run_blocking
from horsies.worker.statements import hold_worker_lock
from support.database import Database
from support.eventually import eventually
from support.proxy import proxied

FORKING = """
import os, sys, warnings
from horsies import AppConfig, Horsies, PostgresConfig

warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads
app = Horsies(AppConfig(broker=PostgresConfig(database_url=sys.argv[1])))
handle = app.handle(sys.argv[2])
handle.get(timeout_ms=1)
if os.fork():
    os.wait()
else:
    handle.get(timeout_ms=20_000)
"""


def listener_count(db: Database) -> int:
    count: int = db.value(
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and application_name = 'horsies listener'"
    )
    return count


def test_a_forked_process_listens_for_itself(database_url: str, db: Database, app: Horsies) -> None:
    task_id = app.tasks["add"].send(1).unwrap().task_id
    process = subprocess.Popen([sys.executable, "-c", FORKING, database_url, task_id])

    eventually(lambda: listener_count(db) == 2, within=30)
    app.handle(task_id).cancel().unwrap()

    assert process.wait(20) == 0


def test_tries_to_reach_a_database_that_is_away_have_pauses_between_them() -> None:
    tries: list[float] = []

    def connect() -> psycopg.Connection[Any]:
        tries.append(time.monotonic())
        return psycopg.connect("host=127.0.0.1 port=1")

    listener = Listener(connect)
    for channel in ("one", "two"):
        listener.subscribe(channel, print)
    eventually(lambda: len(tries) >= 4)
    listener.close()

    assert tries[3] - tries[1] > 0.2


def test_listening_does_not_wait_for_what_the_session_should_hold(
    database_url: str, db: Database
) -> None:
    """A session that has just died may hold the worker's lock for a while longer."""
    heard: list[str] = []

    def hold(connection: psycopg.Connection[Any]) -> bool:
        return bool(run_blocking(connection, hold_worker_lock("w"))[0].value)

    assert db.run(hold_worker_lock("w"))[0].value
    listener = Listener(lambda: psycopg.connect(database_url, autocommit=True), hold=hold)
    listener.subscribe("one", heard.append)
    try:
        eventually(lambda: heard == [""])
        db.execute("select pg_notify('one', 'while it waits')")
        eventually(lambda: heard == ["", "while it waits"])

        db.execute("select pg_advisory_unlock_all()")

        eventually(
            lambda: db.value(
                "select count(*) = 1 from pg_locks where locktype = 'advisory' and granted "
                "and (classid::bigint << 32) | objid::bigint = horsies_lock_key('worker:w')"
            )
        )
    finally:
        listener.close()


@pytest.mark.parametrize("unanswered", ["listen", "select 'held'"])
def test_a_server_that_never_answers_is_left_for_a_new_connection(
    database_url: str, db: Database, unanswered: str
) -> None:
    heard: list[str] = []

    def hold(connection: psycopg.Connection[Any]) -> bool:
        return bool(connection.execute("select 'held'").fetchall())

    with proxied(database_url) as (proxy, url):
        proxy.hold(unanswered, side="asked")
        listener = Listener(lambda: psycopg.connect(url, autocommit=True), hold=hold, limit_s=0.5)
        listener.subscribe("one", heard.append)
        try:
            eventually(lambda: db.execute("select pg_notify('one', 'new')") and "new" in heard)
        finally:
            listener.close()


def test_what_arrives_during_a_statement_of_the_listeners_own_is_heard(database_url: str) -> None:
    heard: list[str] = []

    def hold(connection: psycopg.Connection[Any]) -> bool:
        connection.execute("select pg_notify('one', 'meanwhile'), pg_notify('wakes', 'meanwhile')")
        return True

    has_subscribed = threading.Event()

    def connect() -> psycopg.Connection[Any]:
        assert has_subscribed.wait(20)
        return psycopg.connect(database_url, autocommit=True)

    listener = Listener(connect, hold=hold)
    listener.subscribe("wakes", lambda _payload: heard.append("woken"), only_wakes=True)
    listener.subscribe("one", heard.append)
    has_subscribed.set()
    try:
        eventually(lambda: sorted(heard) == ["", "meanwhile", "woken", "woken"])
    finally:
        listener.close()


def test_subscriber_that_raises_keeps_no_other_from_hearing(
    database_url: str, db: Database
) -> None:
    heard: list[str] = []

    def refuse(_payload: str) -> None:
        raise RuntimeError("Event loop is closed")

    listener = Listener(lambda: psycopg.connect(database_url, autocommit=True))
    listener.subscribe("one", refuse)
    listener.subscribe("one", heard.append)
    try:
        eventually(lambda: heard)
        heard.clear()
        db.execute("select pg_notify('one', 'first')")
        db.execute("select pg_notify('one', 'second')")
        eventually(lambda: heard == ["first", "second"])
    finally:
        listener.close()


def test_a_closed_listener_leaves_no_files_open(database_url: str) -> None:
    before = psutil.Process().num_fds()

    for _ in range(3):
        listener = Listener(lambda: psycopg.connect(database_url, autocommit=True))
        listener.subscribe("one", print)
        listener.close()

    assert psutil.Process().num_fds() == before
