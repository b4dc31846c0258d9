"""Claims work: how many, from which queues, when. One claim statement is in flight at a time.

Passes start from marks, where earlier ones stopped; a full scan from the head of the queues finds
what became claimable behind them. The full scan takes at most a thirtieth of the time, so it is
frequent where it is cheap (decision 0003).
"""

import asyncio
import logging
import operator
from collections.abc import Callable, Sequence

from horsies.clock import jittered, monotonic
from horsies.recovery.statements import return_unheld_tasks
from horsies.worker.held_task import HeldTask
from horsies.worker.holdings import Holdings
from horsies.worker.lanes import Lanes
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.settings import WorkerContext
from horsies.worker.statements import ClaimRequest, Mark, claim_tasks, next_due

_logger = logging.getLogger("horsies.worker")

# 500 per pass: more gain nothing (docs/concepts/performance.md, raw claim + complete).
_MAX_ROWS = 500
_FULL_SCAN_SHARE = 30.0
_POLL_LOW, _POLL_HIGH = 0.6, 1.8
_DUE_CHECK_S = 1.0


class Claimer:
    """The worker's appetite."""

    def __init__(
        self,
        context: WorkerContext,
        connection: ServiceConnection,
        lanes: Lanes,
        holdings: Holdings,
    ) -> None:
        self._context = context
        self._connection = connection
        self._lanes = lanes
        self._holdings = holdings
        self._wake = asyncio.Event()
        self._wake_count = 0
        self._marks: dict[tuple[str, int, int], Mark] = {}
        # Per lane: whether the last pass that asked for it left something behind.
        self._may_have_more = [True] * len(lanes.all)
        self._is_sparse = [True] * len(lanes.all)
        self._full_scan_at = 0.0
        self._full_scan_cost_s = 0.0
        self._owes_full_scan = False
        self._has_lost_answer = False
        self._due_at: float | None = None
        self._due_checked_at = 0.0
        self._due_wake_count = -1

    def wake(self) -> None:
        """There may be something to claim."""
        self._wake_count += 1
        self._may_have_more = [True] * len(self._lanes.all)
        self._wake.set()

    def slot_freed(self) -> None:
        """A slot has become free: worth a pass if the last one left something behind."""
        if any(self._may_have_more) or self._context.has_caps or self._holdings.buffer.tasks:
            self._wake.set()

    async def run(self, stopping: asyncio.Event, on_idle: Callable[[], None]) -> None:
        """Claim until told to stop."""
        while not stopping.is_set():
            self._wake.clear()
            claimed = await self._connection.persistently_until(stopping, "claiming", self.run_once)
            if claimed != (0,) or stopping.is_set():
                continue
            if self._is_idle():
                on_idle()
            await self._sleep(stopping)

    async def run_once(self) -> int:
        """One pass; how many tasks it took."""
        if self._has_lost_answer:
            await self._return_unheld()
        # Until an answer is here, what was started or claimed is known to the database alone.
        self._has_lost_answer = True
        await self._holdings.buffer.start_waiting()
        request = self._request()
        started_at, wake_count = monotonic(), self._wake_count
        answer = await self._connection.run(claim_tasks(request)) if request else []
        self._has_lost_answer = False
        if request is None:
            return 0
        rows = [row for row in answer if row.task_id]
        self._move_marks(request, answer)
        self._learn(request, answer, started_at)
        if self._wake_count != wake_count:
            # What was committed while the statement ran may be missing from its answer.
            self.wake()
        for row in rows:
            if row.pid is None:
                self._holdings.buffer.add(row)
        self._holdings.dispatcher.start([row for row in rows if row.pid is not None])
        return len(rows)

    @property
    def has_lost_answer(self) -> bool:
        """Whether the database may hold tasks for this worker that it does not know of."""
        return self._has_lost_answer

    async def _return_unheld(self) -> None:
        """Give back what a statement whose answer was lost may have taken: none of it ever ran."""
        owner_id = self._context.identity.worker_id
        statement = return_unheld_tasks(owner_id, self._holdings.task_ids())
        returned = (await self._connection.run(statement))[0].value
        self._has_lost_answer = False
        if returned:
            _logger.warning(
                "gave back %d tasks claimed by a statement whose answer was lost", returned
            )

    def _request(self) -> ClaimRequest | None:
        if self._holdings.completer.is_full or not (
            any(self._may_have_more) or self._context.has_caps
        ):
            return None
        context = self._context
        prefetch = context.config.prefetch_buffer
        may_prefetch = prefetch is None and not self._context.has_caps
        starts: list[int] = []
        # Each lane its share: short tasks of one kind, taken far ahead, must not starve another.
        wanted = [more or self._context.has_caps for more in self._may_have_more]
        # A sparse lane finds little and needs none kept for it.
        full = [more and not sparse for more, sparse in zip(wanted, self._is_sparse, strict=True)]
        share = _MAX_ROWS // max(1, sum(full))
        child_pids: list[int] = []
        for lane, is_wanted in zip(self._lanes.all, wanted, strict=True):
            room = min(lane.room(may_prefetch=may_prefetch), share) if is_wanted else 0
            if lane.kind == "process":
                child_pids = lane.pids(room, context.identity.pid)
                room = len(child_pids)
            starts.append(room)
        claims = self._holdings.buffer.room(prefetch or 0)
        limit = context.settings.max_claim_per_worker
        if limit:
            claims = [
                min(count, max(0, limit - len(self._holdings.buffer.tasks))) for count in claims
            ]
        if not any(starts) and not any(claims):
            return None
        now = monotonic()
        is_full_scan = now >= self._full_scan_at
        return ClaimRequest(
            identity=context.identity,
            lease=context.lease,
            queues=[queue.name for queue in context.queues],
            queue_caps=[queue.cap for queue in context.queues],
            cluster_cap=context.config.cluster_wide_cap,
            task_lanes=self._lanes.by_task_name,
            lane_starts=starts,
            lane_claims=claims,
            sparse_lanes=self._is_sparse,
            child_pids=child_pids,
            batch_limit=context.settings.max_claim_batch,
            is_full_scan=is_full_scan,
            counts_claims=not prefetch,
            marks={} if is_full_scan else self._marks,
        )

    def _learn(self, request: ClaimRequest, answer: Sequence[HeldTask], started_at: float) -> None:
        now = monotonic()
        if request.is_full_scan:
            # The cheaper of the last two counts: one slow look (a cold cache) is no measure.
            before_s, self._full_scan_cost_s = self._full_scan_cost_s, now - started_at
            self._full_scan_at = now + _FULL_SCAN_SHARE * min(before_s, self._full_scan_cost_s)
            self._owes_full_scan = False
        if request.batch_limit and sum(bool(row.task_id) for row in answer) >= request.batch_limit:
            return
        # Lanes whose search ended at its limit, in a backlog of other lanes.
        unsearched = {row.lane - 1 for row in answer if not row.task_id and row.args}
        if unsearched:
            self._wake.set()
        for lane, is_filled in enumerate(self._filled_lanes(request, answer)):
            if request.lane_starts[lane] or request.lane_claims[lane]:
                self._is_sparse[lane] = not is_filled
                self._may_have_more[lane] = is_filled or lane in unsearched
        if not all(self._may_have_more) and not request.is_full_scan:
            self._owes_full_scan = True

    def _move_marks(self, request: ClaimRequest, rows: Sequence[HeldTask]) -> None:
        """Forward only; but a full scan that filled a lane may have left more just behind it.

        A row without id says up to where a lane was searched through; `args` is the id there.
        """
        filled = self._filled_lanes(request, rows)
        for row in rows:
            key = (row.queue_name, row.priority, row.lane)
            mark = Mark(row.enqueued_at, row.task_id or row.args or "")
            known = self._marks.get(key, mark)
            goes_back = request.is_full_scan and filled[row.lane - 1]
            if goes_back or (mark.enqueued_at, mark.id) >= (known.enqueued_at, known.id):
                self._marks[key] = mark

    def _filled_lanes(self, request: ClaimRequest, rows: Sequence[HeldTask]) -> list[bool]:
        found = [0] * len(self._lanes.all)
        for row in rows:
            found[row.lane - 1] += bool(row.task_id)
        asked = map(operator.add, request.lane_starts, request.lane_claims)
        return [got >= wanted for wanted, got in zip(asked, found, strict=True)]

    def _is_idle(self) -> bool:
        return not (
            any(self._may_have_more)
            or self._owes_full_scan
            or self._holdings.dispatcher.running
            or self._holdings.buffer.tasks
        )

    async def _sleep(self, stopping: asyncio.Event) -> None:
        """Until a notification, a free slot, a due row or the fallback poll, whichever is first."""
        if self._wake.is_set():
            return
        poll_s = self._context.config.resilience.notify_poll_interval_ms / 1000
        poll_at = monotonic() + jittered(poll_s, low=_POLL_LOW, high=_POLL_HIGH)
        times = [poll_at]
        if not any(self._may_have_more):
            await self._check_due(stopping)
        if self._due_at is not None:
            times.append(self._due_at)
        if self._owes_full_scan:
            times.append(self._full_scan_at)
        try:
            async with asyncio.timeout(max(0.0, min(times) - monotonic())):
                await self._wake.wait()
        except TimeoutError:
            self._may_have_more = [True] * len(self._lanes.all)
            if monotonic() >= poll_at:
                self._full_scan_at = 0.0  # the contract's last resort leaves nothing out

    async def _check_due(self, stopping: asyncio.Event) -> None:
        """When the next waiting row becomes due; asked again only after something was told."""
        now = monotonic()
        if self._due_at is None and self._due_wake_count == self._wake_count:
            return
        if now - self._due_checked_at < _DUE_CHECK_S:
            self._due_at = min(self._due_at or now + _DUE_CHECK_S, now + _DUE_CHECK_S)
            return
        self._due_checked_at, self._due_wake_count = now, self._wake_count
        statement = next_due([queue.name for queue in self._context.queues])
        found = await self._connection.persistently_until(
            stopping, "looking ahead", lambda: self._connection.run(statement)
        )
        seconds = found[0][0].value if found else None
        self._due_at = None if seconds is None else monotonic() + max(0.0, float(seconds))
