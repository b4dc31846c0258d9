"""What a worker hears while it sleeps: new work, cancel requests, pings.

The listener's connection also carries the worker's liveness lock.
"""

import asyncio
import json
import logging

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from horsies.database.connection import Address
from horsies.database.listener import Listener
from horsies.database.notifications import (
    CANCEL_CHANNEL,
    PING_CHANNEL,
    PONG_CHANNEL,
    notify,
    queue_channel,
)
from horsies.database.statement import run_blocking
from horsies.worker.cancel_watch import CancelWatch
from horsies.worker.claimer import Claimer
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.settings import WorkerContext
from horsies.worker.statements import hold_worker_lock

_logger = logging.getLogger("horsies.worker")


class PingAnswers:
    """Answers pings with what this worker is and does."""

    def __init__(
        self, context: WorkerContext, connection: ServiceConnection, dispatcher: Dispatcher
    ) -> None:
        self._context = context
        self._connection = connection
        self._dispatcher = dispatcher

    async def answer(self, ping_id: str) -> None:
        identity = self._context.identity
        pong = {
            "ping_id": ping_id,
            "worker_id": identity.worker_id,
            "hostname": identity.hostname,
            "pid": identity.pid,
            "queues": [queue.name for queue in self._context.queues],
            "tasks_running": len(self._dispatcher.running),
        }
        try:
            await self._connection.run(notify([(PONG_CHANNEL, json.dumps(pong))]))
        except psycopg.Error as error:
            _logger.warning("could not answer a ping: %s", error)


def start_listener(
    address: Address | None,
    context: WorkerContext,
    claimer: Claimer,
    cancel_watch: CancelWatch,
    pings: PingAnswers,
) -> Listener | None:
    """Listen for this worker; `None` where LISTEN is not to be had."""
    if address is None:
        _logger.info("no direct database URL behind the pooler: polling only")
        return None
    loop = asyncio.get_running_loop()

    def hold_lock(connection: Connection[TupleRow]) -> None:
        run_blocking(connection, hold_worker_lock(context.identity.worker_id))

    def wake(_payload: str) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(claimer.wake)

    def cancel(task_id: str) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(cancel_watch.wake, task_id)

    def answer(ping_id: str) -> None:
        if ping_id and not loop.is_closed():
            asyncio.run_coroutine_threadsafe(pings.answer(ping_id), loop)

    listener = Listener(lambda: address.connect("horsies listener"), on_connect=hold_lock)
    for queue in context.queues:
        listener.subscribe(queue_channel(queue.name), wake)
    listener.subscribe(PING_CHANNEL, answer)
    listener.subscribe(CANCEL_CHANNEL, cancel)
    return listener
