"""Is the database there, and which workers answer?"""

import asyncio
import json
import threading
from dataclasses import dataclass
from datetime import datetime

from horsies.clock import monotonic
from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.database.notifications import PING_CHANNEL, PONG_CHANNEL, notify
from horsies.database.operation import FAILURES, operation_error
from horsies.database.statement import run_blocking
from horsies.ids import new_id
from horsies.operations.statements import ping
from horsies.result import Err, Ok
from horsies.result.broker import BrokerOperationError, BrokerResult

# What the database itself may take to pass a ping on, beside the time for its answers.
_ANSWER_S = 1.0


@dataclass(frozen=True, slots=True)
class DatabasePing:
    round_trip_ms: float
    database_time: datetime
    server_version: str


@dataclass(frozen=True, slots=True)
class WorkerPong:
    worker_id: str
    hostname: str
    pid: int
    queues: list[str]
    tasks_running: int
    round_trip_ms: float


def ping_database(database: Database, timeout_ms: int) -> BrokerResult[DatabasePing]:
    """One round trip on a connection of its own, within the limit."""
    answers: list[BrokerResult[DatabasePing]] = []

    def ask() -> None:
        try:
            with database.address.connect("horsies ping") as connection:
                started = monotonic()
                row = run_blocking(connection, ping())[0]
                round_trip_ms = (monotonic() - started) * 1000
            answers.append(Ok(DatabasePing(round_trip_ms, row.database_time, row.server_version)))
        except FAILURES as error:
            answers.append(Err(operation_error(BrokerErrorCode.DB_PING_FAILED, error)))

    # An unresponsive server answers no cancel either: only the thread is left behind.
    thread = threading.Thread(target=ask, name="horsies-ping", daemon=True)
    thread.start()
    thread.join(timeout_ms / 1000)
    if answers:
        return answers[0]
    message = f"the database did not answer within {timeout_ms} ms"
    return Err(BrokerOperationError(BrokerErrorCode.DB_PING_FAILED, message, retryable=True))


def ping_workers(database: Database, timeout_ms: int) -> BrokerResult[list[WorkerPong]]:
    """Ask every worker through LISTEN/NOTIFY and collect what arrives in time."""
    address = database.session_address
    if address is None:
        message = (
            "workers cannot be asked behind a transaction-mode pooler; set session_database_url"
        )
        return Err(
            BrokerOperationError(BrokerErrorCode.WORKER_PING_FAILED, message, retryable=False)
        )
    ping_id = new_id()
    pongs: list[WorkerPong] = []
    try:
        with (
            address.connect("horsies ping") as connection,
            database.watchdog.limit(connection, timeout_ms / 1000 + _ANSWER_S),
        ):
            connection.execute(f"listen {PONG_CHANNEL}".encode())
            started = monotonic()
            run_blocking(connection, notify([(PING_CHANNEL, ping_id)]))
            for notification in connection.notifies(timeout=timeout_ms / 1000):
                pong = _pong(notification.payload, ping_id, (monotonic() - started) * 1000)
                if pong is not None:
                    pongs.append(pong)
    except FAILURES as error:
        return Err(operation_error(BrokerErrorCode.WORKER_PING_FAILED, error))
    return Ok(pongs)


def _pong(payload: str, ping_id: str, round_trip_ms: float) -> WorkerPong | None:
    """The answer to this ping; anyone may notify on the channel, so the rest is passed over."""
    try:
        answer = json.loads(payload)
        if answer["ping_id"] != ping_id:
            return None
        return WorkerPong(
            answer["worker_id"],
            answer["hostname"],
            answer["pid"],
            answer["queues"],
            answer["tasks_running"],
            round_trip_ms,
        )
    except (ValueError, KeyError, TypeError):
        return None


async def ping_database_async(database: Database, timeout_ms: int) -> BrokerResult[DatabasePing]:
    return await asyncio.to_thread(ping_database, database, timeout_ms)


async def ping_workers_async(database: Database, timeout_ms: int) -> BrokerResult[list[WorkerPong]]:
    return await asyncio.to_thread(ping_workers, database, timeout_ms)
