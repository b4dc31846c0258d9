"""Claims work: how many, from which queues, when. One claim statement is in flight at a time.

Passes start from marks, where earlier ones stopped; a full scan from the head of the queues finds
what became claimable behind them. The full scan takes at most a thirtieth of the time, so it is
frequent where it is cheap (decision 0003).
"""

import asyncio
import logging
import math
import random
import sys
from collections.abc import Callable, Sequence

from horsies.clock import jittered, monotonic
from horsies.worker.claim_news import ClaimNews
from horsies.worker.claim_request import (
    ClaimLimits,
    ClaimRequest,
    ClaimRow,
    Counts,
    CutShort,
    Granted,
    LaneRequest,
    ScanPosition,
)
from horsies.worker.held_task import HeldTask
from horsies.worker.holdings import Holdings
from horsies.worker.lanes import LaneNames, Lanes
from horsies.worker.lost_claims import LostClaims
from horsies.worker.marks import Marks, filled_lanes, furthest
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.settings import ServedQueue, WorkerContext
from horsies.worker.statements import claim_tasks, in_claim_order, next_due
from horsies.worker.unknown_tasks import UnknownNames

_logger = logging.getLogger("horsies.worker")

# 500 per pass: more gain nothing (docs/concepts/performance.md, raw claim + complete).
_MAX_ROWS = 500
_FULL_SCAN_SHARE = 30.0
_POLL_LOW, _POLL_HIGH = 0.6, 1.8
_DUE_CHECK_S = 1.0
# How many of the idle workers of a fleet look for one task: that none does has a chance of 2 %.
_LOOK_AT_ONCE = 4
_random = random.SystemRandom()
# How often a full scan may come for what a peer has handed back.
_RETURNED_SHARE = 3.0


class _ToldQueues:
    """The queues to look at since the last look: those that notifications named, or all."""

    def __init__(self) -> None:
        self._names: set[str] | None = None

    def add(self, queue_name: str | None) -> None:
        if queue_name is None:
            self._names = None
        elif self._names is not None:
            self._names.add(queue_name)

    def add_all(self, queues: Sequence[ServedQueue]) -> None:
        if self._names is not None:
            self._names.update(queue.name for queue in queues)

    def __bool__(self) -> bool:
        return self._names is None or bool(self._names)

    def take(self, queues: Sequence[ServedQueue]) -> Sequence[ServedQueue]:
        """Return those of `queues` to look at now, and start a new list."""
        names, self._names = self._names, set()
        return [queue for queue in queues if queue.name in names] if names else queues


class Claimer:
    """Decides how many tasks to claim, from which queues and when."""

    def __init__(
        self,
        context: WorkerContext,
        connection: ServiceConnection,
        lanes: Lanes,
        holdings: Holdings,
        news: ClaimNews,
        unknown: UnknownNames,
    ) -> None:
        self._context = context
        self._connection = connection
        self._lanes = lanes
        self._holdings = holdings
        self._news = news
        self._unknown = unknown
        self._wake = asyncio.Event()
        self._wake_count = 0
        self._marks = Marks()
        self._counts: str | None = None
        # Per lane: whether the last claim that asked for it left something behind, or found little.
        self._may_have_more = [True] * len(lanes.all)
        self._is_sparse = [True] * len(lanes.all)
        self._full_scan_at = 0.0
        self._full_scanned_at = 0.0
        self._full_scan_cost_s = 0.0
        self._owes_full_scan = False
        self.lost = LostClaims(connection, holdings, context.identity.worker_id)
        self._to_claim = _ToldQueues()
        self._to_ask_when_due = _ToldQueues()
        self._due_at: float | None = None
        self._due_asked_at = 0.0
        self._taken_count = 0
        self.idle_peer_count = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether this worker has taken all the tasks it may take in its life."""
        return 0 < self._context.settings.max_tasks <= self._taken_count

    def hear(self, queue_name: str) -> None:
        """There is a notification of new work, which every worker of the fleet hears.

        Of many idle workers a few look at once. One that finds more than it can take notifies
        again, which wakes a few more; all others find what is left by their polls.
        """
        if _random.random() * (self.idle_peer_count + 1) < _LOOK_AT_ONCE:
            self.wake(queue_name)
        else:
            self._to_claim.add(queue_name)
            self._to_ask_when_due.add(queue_name)

    def wake(self, queue_name: str | None = None) -> None:
        """There may be something to claim, in this queue or in any."""
        self._wake_count += 1
        self._to_claim.add(queue_name)
        self._to_ask_when_due.add(queue_name)
        self._expect_more()

    def look_behind(self) -> None:
        """A peer has handed tasks back, which may stand behind the marks."""
        soon = self._full_scanned_at + _RETURNED_SHARE * self._full_scan_cost_s
        self._full_scan_at = min(self._full_scan_at, soon)
        self.wake()

    def _expect_more(self) -> None:
        self._may_have_more = [True] * len(self._lanes.all)
        self._wake.set()

    def slot_freed(self) -> None:
        """A slot has become free: worth a pass if the last one left something behind."""
        if any(self._may_have_more) or self._holdings.buffer.tasks:
            self._wake.set()

    async def run(self, stopping: asyncio.Event, on_idle: Callable[[], None]) -> None:
        """Claim until told to stop."""
        while not stopping.is_set():
            self._wake.clear()
            claimed = await self._connection.persistently_until(stopping, "claiming", self.run_once)
            if claimed != (0,) or stopping.is_set():
                continue
            if self._is_idle() or self.is_exhausted:
                on_idle()
            await self._sleep(stopping)

    async def run_once(self) -> int:
        """Make one pass; return how many tasks it took."""
        if self.lost.is_due:
            await self.lost.give_back()
        self.lost.is_answer_missing = True
        await self._holdings.buffer.start_waiting()
        request = self._request()
        started_at, wake_count = monotonic(), self._wake_count
        try:
            rows = await self._connection.run(claim_tasks(request)) if request else []
        except BaseException:
            self._to_claim.add(None)
            raise
        self.lost.is_answer_missing = False
        if request is None:
            return 0
        tasks = in_claim_order(rows)
        positions = [row for row in rows if isinstance(row, ScanPosition)]
        is_cut_short = any(isinstance(row, CutShort) for row in rows)
        self._counts = next((row.text for row in rows if isinstance(row, Counts)), None)
        filled = filled_lanes(request, tasks, is_cut_short=is_cut_short)
        self._marks.move(request, [*positions, *furthest(tasks)], filled)
        cost_s = monotonic() - started_at
        if request.is_full_scan:
            self._plan_full_scan(cost_s=cost_s)
        elif any(position.may_have_more for position in positions):
            # A sparse lane walks over a backlog of others, as far as its last full scan began it.
            self._full_scan_at += _FULL_SCAN_SHARE * cost_s
        batch_limit = request.limits.batch_limit
        if not is_cut_short and (not batch_limit or len(tasks) < batch_limit):
            self._learn(request, positions, filled)
        if any(self._may_have_more):
            self._to_claim.add_all(request.queues)
            if tasks and self.idle_peer_count >= _LOOK_AT_ONCE:
                self._news.pass_on({task.queue_name for task in tasks})
        if self._wake_count != wake_count:
            # What was committed while the statement ran may be missing from its answer.
            self._expect_more()
        try:
            await self._unknown.leave_to_peers(tasks)
        finally:
            self._hold(request, rows, tasks)
        return len(tasks)

    def _hold(
        self,
        request: ClaimRequest,
        rows: Sequence[HeldTask | ClaimRow],
        tasks: Sequence[HeldTask],
    ) -> None:
        """Take over what is committed: first the permit, then the tasks, which may need it."""
        self._taken_count += len(tasks)
        for row in rows:
            if isinstance(row, Granted) and request.permit is not None:
                self._holdings.dispatcher.grant(request.permit, row.voided)
        if tasks:
            self._news.add(tasks)
            self._holdings.dispatcher.events.on_claimed(tasks)
        for task in tasks:
            if task.pid is None:
                self._holdings.buffer.add(task)
        self._holdings.dispatcher.start([task for task in tasks if task.pid is not None])

    def _request(self) -> ClaimRequest | None:
        context = self._context
        if self._holdings.completer.is_full or not any(self._may_have_more):
            return None
        self._unknown.take_again()
        lanes = self._lane_requests()
        if not any(lane.room for lane in lanes):
            return None
        lanes, permit = self._holdings.dispatcher.permits.for_claim(lanes)
        is_full_scan = monotonic() >= self._full_scan_at
        if is_full_scan or context.config.cluster_wide_cap is not None:
            self._to_claim.add(None)  # a place that one queue freed may be any queue's
        return ClaimRequest(
            identity=context.identity,
            lease=context.lease,
            queues=self._to_claim.take(context.queues),
            lanes=lanes,
            limits=ClaimLimits(
                cluster_cap=context.config.cluster_wide_cap,
                counts_claims=not context.config.prefetch_buffer,
                batch_limit=context.settings.max_claim_batch,
                counts=None if is_full_scan else self._counts,
            ),
            marks={} if is_full_scan else self._marks.by_key,
            is_full_scan=is_full_scan,
            permit=permit,
        )

    def _lane_requests(self) -> list[LaneRequest]:
        """What each lane may take.

        Each has its share: short tasks of one kind, taken far ahead, must not starve another.
        """
        context, lanes = self._context, self._lanes
        may_prefetch = context.config.prefetch_buffer is None and not context.has_caps
        wanted = self._may_have_more
        # A sparse lane finds little and needs none kept for it.
        full = [more and not sparse for more, sparse in zip(wanted, self._is_sparse, strict=True)]
        share = _MAX_ROWS // max(1, sum(full))
        claims = self._buffer_room()
        left = self._left_to_take()
        requests: list[LaneRequest] = []
        for index, lane in enumerate(lanes.all):
            starts = min(lane.room(may_prefetch=may_prefetch), share) if wanted[index] else 0
            starts = min(starts, left)
            left -= starts
            child_pids: list[int] | None = None
            if lane.kind == "process":
                child_pids = lane.pids(starts, context.identity.pid)
                starts = len(child_pids)
            requests.append(
                LaneRequest(
                    starts=starts,
                    claims=claims[index] if lane.is_started else 0,
                    child_pids=child_pids,
                    # A lane of all names has no backlog of others to walk over.
                    is_sparse=self._is_sparse[index]
                    and (len(lanes.all) > 1 or lanes.names[index] != LaneNames()),
                    only_names=lanes.names[index].only_names,
                    except_names=lanes.names[index].except_names,
                )
            )
        return requests

    def _left_to_take(self) -> int:
        """What the life of this worker leaves to all lanes; each lane has its own share besides."""
        limit = self._context.settings.max_tasks
        return limit - self._taken_count if limit else sys.maxsize

    def _buffer_room(self) -> list[int]:
        """How many more rows of each lane may wait in the buffer."""
        if self._context.settings.max_tasks:  # each of them starts at once
            return [0] * len(self._lanes.all)
        buffer = self._holdings.buffer
        room = buffer.room(self._context.config.prefetch_buffer or 0)
        limit = self._context.settings.max_claim_per_worker
        if not limit:
            return room
        return [min(count, max(0, limit - len(buffer.tasks))) for count in room]

    def _plan_full_scan(self, *, cost_s: float) -> None:
        """The cheaper of the last two counts: one slow scan (a cold cache) is no measure."""
        before_s, self._full_scan_cost_s = self._full_scan_cost_s, cost_s
        self._full_scanned_at = monotonic()
        self._full_scan_at = self._full_scanned_at + _FULL_SCAN_SHARE * min(before_s, cost_s)
        self._owes_full_scan = False

    def _learn(
        self, request: ClaimRequest, positions: Sequence[ScanPosition], filled: Sequence[bool]
    ) -> None:
        """Which lanes the next claim asks for, after one that no limit cut short."""
        # Scans that ended at their limit, in a backlog of other lanes.
        unfinished = {position.lane - 1 for position in positions if position.may_have_more}
        if unfinished:
            self._wake.set()
        for index, lane in enumerate(request.lanes):
            if lane.room:
                self._is_sparse[index] = not filled[index]
                self._may_have_more[index] = filled[index] or index in unfinished
        if not all(self._may_have_more) and not request.is_full_scan:
            self._owes_full_scan = True

    def _is_idle(self) -> bool:
        # An end that is not written yet may be followed by further nodes of its workflow.
        return not (any(self._may_have_more) or self._owes_full_scan or self._holdings.task_ids())

    async def _sleep(self, stopping: asyncio.Event) -> None:
        """Until a notification, a free slot, a due row or the fallback poll, whichever is first."""
        if self._wake.is_set():
            return
        poll_s = self._context.config.resilience.notify_poll_interval_ms / 1000
        poll_at = monotonic() + jittered(poll_s, low=_POLL_LOW, high=_POLL_HIGH)
        ask_at = due_at = full_scan_at = poll_at
        if not any(self._may_have_more):  # else only a free slot is missing, which wakes
            if self._to_ask_when_due:
                ask_at = self._due_asked_at + _DUE_CHECK_S
                if monotonic() >= ask_at:
                    await self._ask_when_due(stopping)
                    ask_at = poll_at
            due_at = self._due_at or poll_at
            full_scan_at = self._full_scan_at if self._owes_full_scan else poll_at
        try:
            wake_at = min(poll_at, ask_at, due_at, full_scan_at, self.lost.again_at or poll_at)
            async with asyncio.timeout(max(0.0, wake_at - monotonic())):
                await self._wake.wait()
        except TimeoutError:
            now = monotonic()
            if now >= (self._due_at or math.inf):
                self._due_at = None
                self.wake()
            if now >= full_scan_at:
                self._to_claim.add(None)
                self._expect_more()
            if now >= poll_at:
                self._full_scan_at = 0.0  # the contract's last resort leaves nothing out

    async def _ask_when_due(self, stopping: asyncio.Event) -> None:
        """When the next waiting row becomes due, in the queues that were told of."""
        self._due_asked_at = monotonic()
        queues = self._to_ask_when_due.take(self._context.queues)
        statement = next_due([queue.name for queue in queues])
        found = await self._connection.persistently_until(
            stopping, "looking ahead", lambda: self._connection.run(statement)
        )
        seconds = found[0][0].value if found else None
        if len(queues) == len(self._context.queues):
            self._due_at = None
        if seconds is not None:
            due_at = monotonic() + max(0.0, float(seconds))
            self._due_at = min(self._due_at or due_at, due_at)
