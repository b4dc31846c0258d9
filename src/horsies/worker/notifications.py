"""What a worker hears while it sleeps: new work, cancel requests, pings, workflows that wait.

The listener's connection also carries the worker's liveness lock.
"""

import asyncio
import json
import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from psycopg import Connection
from psycopg.rows import TupleRow

from horsies.database.connection import Address
from horsies.database.listener import Listener
from horsies.database.notifications import (
    CANCEL_CHANNEL,
    PING_CHANNEL,
    PONG_CHANNEL,
    RETURNED_CHANNEL,
    STOP_CHANNEL,
    WORKFLOW_CHANNEL,
    notify,
    queue_channel,
)
from horsies.database.statement import run_blocking
from horsies.worker.cancel_watch import CancelWatch
from horsies.worker.claimer import Claimer
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.service_connection import Outage, ServiceConnection
from horsies.worker.settings import WorkerContext
from horsies.worker.statements import hold_worker_lock
from horsies.worker.stopped_nodes import StoppedNodes
from horsies.worker.workflow_service import WorkflowService

_logger = logging.getLogger("horsies.worker")
_MAX_PINGS = 16
_MAX_PING_CHARACTERS = 64


class PingAnswers:
    """Answers pings with what this worker is and does, as a service of the worker.

    Anyone may notify: of a flood only the newest pings are answered, all in one statement.
    """

    name = "ping answers"
    interval_s = 3600.0

    def __init__(
        self, context: WorkerContext, connection: ServiceConnection, dispatcher: Dispatcher
    ) -> None:
        self._context = context
        self._connection = connection
        self._dispatcher = dispatcher
        self._asked: deque[str] = deque(maxlen=_MAX_PINGS)
        self.woken = asyncio.Event()

    def add(self, ping_id: str) -> bool:
        """Note that someone asks, from any thread; whether the text can be an id of a ping."""
        is_id = 0 < len(ping_id) <= _MAX_PING_CHARACTERS
        if is_id:
            self._asked.append(ping_id)
        return is_id

    async def run_once(self) -> int:
        """Answer the pings that have arrived; return how many."""
        asked = list(self._asked)
        self._asked.clear()
        if asked:
            pongs = [(PONG_CHANNEL, self._pong(ping_id)) for ping_id in asked]
            await self._connection.run(notify(pongs))
        return len(asked)

    def _pong(self, ping_id: str) -> str:
        identity = self._context.identity
        pong = {
            "ping_id": ping_id,
            "worker_id": identity.worker_id,
            "hostname": identity.hostname,
            "pid": identity.pid,
            "queues": [queue.name for queue in self._context.queues],
            "tasks_running": len(self._dispatcher.running),
        }
        return json.dumps(pong)


@dataclass(frozen=True, slots=True)
class Heard:
    """Who acts on what is heard."""

    claimer: Claimer
    cancel_watch: CancelWatch
    pings: PingAnswers
    workflows: WorkflowService
    stopped_nodes: StoppedNodes


def start_listener(
    address: Address | None, context: WorkerContext, heard: Heard, outage: Outage
) -> Listener | None:
    """Listen for this worker; `None` where LISTEN is not available."""
    if address is None:
        _logger.info("no direct database URL behind the pooler: polling only")
        return None
    loop = asyncio.get_running_loop()

    def hold_lock(connection: Connection[TupleRow]) -> bool:
        """A session that has just died may hold it for a moment longer."""
        return bool(run_blocking(connection, hold_worker_lock(context.identity.worker_id))[0].value)

    listener = Listener(
        lambda: address.connect("horsies listener"),
        hold=hold_lock,
        on_connect=_in_loop(loop, outage.end),
    )
    outage.on_read_only = listener.reconnect
    for queue in context.queues:
        wake_queue = _in_loop(loop, partial(heard.claimer.hear, queue.name))
        channel = queue_channel(queue.name)
        listener.subscribe(channel, _if(_always, wake_queue), only_wakes=True)
    look_behind = _in_loop(loop, heard.claimer.look_behind)
    listener.subscribe(RETURNED_CHANNEL, _if(_always, look_behind), only_wakes=True)
    answer = _in_loop(loop, heard.pings.woken.set)
    listener.subscribe(PING_CHANNEL, _if(heard.pings.add, answer))
    look = _in_loop(loop, heard.cancel_watch.woken.set)
    listener.subscribe(CANCEL_CHANNEL, _if(heard.cancel_watch.is_concerned, look))
    look_after = _in_loop(loop, heard.workflows.wake)
    listener.subscribe(WORKFLOW_CHANNEL, _if(_always, look_after), only_wakes=True)
    settle = _in_loop(loop, heard.stopped_nodes.wake)
    listener.subscribe(STOP_CHANNEL, _if(_always, settle), only_wakes=True)
    return listener


def _always(_payload: str) -> bool:
    return True


def _if(judge: Callable[[str], bool], act: Callable[[], None]) -> Callable[[str], None]:
    """What the listener does on a channel: judge the payload on its own thread, then act."""

    def on_notification(payload: str) -> None:
        if judge(payload):
            act()

    return on_notification


def _in_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> Callable[[], None]:
    """Calls `function` in the loop, from the listener's thread.

    Once however often it is asked for: a flood of notifications must not pile up in a loop that is
    busy or blocked.
    """
    is_due = threading.Event()

    def call() -> None:
        is_due.clear()
        function()

    def ask() -> None:
        if not is_due.is_set() and not loop.is_closed():
            is_due.set()
            loop.call_soon_threadsafe(call)

    return ask
