"""Claims work: how many, from which queues, when. One claim statement is in flight at a time.

Passes start from marks, where earlier ones stopped; a full look from the head of the queues finds
what became claimable behind them. The full look takes at most a thirtieth of the time, so it is
frequent where it is cheap (decision 0003).
"""

import asyncio
import logging
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from horsies.clock import jittered, monotonic
from horsies.config import AppConfig
from horsies.database.tasks import (
    ClaimRequest,
    Mark,
    claim_tasks,
    next_due,
    return_unheld_tasks,
)
from horsies.tasks.claims import ClaimedTask
from horsies.worker.buffer import Buffer
from horsies.worker.completer import Completer
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.lanes import Lane
from horsies.worker.link import Link
from horsies.worker.settings import ServedQueue, WorkerConfig, claim_lease

_logger = logging.getLogger("horsies.worker")

# 500 per pass: the knee of the curve in performance.md.
_MAX_ROWS = 500
_FULL_LOOK_SHARE = 30.0
_POLL_LOW, _POLL_HIGH = 0.6, 1.8
_DUE_CHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class Identity:
    """Who claims."""

    worker_id: str
    hostname: str
    pid: int


class Claimer:
    """The worker's appetite."""

    def __init__(
        self,
        config: AppConfig,
        settings: WorkerConfig,
        identity: Identity,
        queues: Sequence[ServedQueue],
        lanes: Sequence[Lane],
        task_lanes: dict[str, int],
        parts: tuple[Link, Dispatcher, Completer, Buffer],
    ) -> None:
        self._config = config
        self._settings = settings
        self._identity = identity
        self._queues = queues
        self._lanes = lanes
        self._task_lanes = task_lanes
        self._link, self._dispatcher, self._completer, self._buffer = parts
        self._wake = asyncio.Event()
        self._told_count = 0
        self._marks: dict[tuple[str, int, int], Mark] = {}
        # Per lane: whether the last pass that asked for it left something behind.
        self._may_have_more = [True] * len(lanes)
        self._is_sparse = [True] * len(lanes)
        self._full_look_at = 0.0
        self._look_cost_s = 0.0
        self._owes_full_look = False
        self._has_lost_answer = False
        self._due_at: float | None = None
        self._due_checked_at = 0.0
        self._due_told_count = -1
        self._has_caps = config.cluster_wide_cap is not None or any(
            queue.cap is not None for queue in queues
        )

    def look(self) -> None:
        """There may be something to claim."""
        self._told_count += 1
        self._may_have_more = [True] * len(self._lanes)
        self._wake.set()

    def room(self) -> None:
        """A slot has become free: worth a pass if the last one left something behind."""
        if any(self._may_have_more) or self._has_caps or self._buffer.tasks:
            self._wake.set()

    async def run(self, stopping: asyncio.Event, on_idle: Callable[[], None]) -> None:
        """Claim until told to stop."""
        while not stopping.is_set():
            self._wake.clear()
            claimed = await self._link.persistently_until(stopping, "claiming", self.run_once)
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
        await self._buffer.start_waiting()
        request = self._request()
        started_at, told_count = monotonic(), self._told_count
        answer = await self._link.run(claim_tasks(request)) if request else []
        self._has_lost_answer = False
        if request is None:
            return 0
        rows = [row for row in answer if row.id]
        self._move_marks(request, answer)
        self._learn(request, answer, started_at)
        if self._told_count != told_count:
            # What was committed while the statement ran may be missing from its answer.
            self.look()
        for row in rows:
            if row.worker_pid is None:
                self._buffer.add(row)
        self._dispatcher.start([row for row in rows if row.worker_pid is not None])
        return len(rows)

    @property
    def has_lost_answer(self) -> bool:
        """Whether the database may hold tasks for this worker that it does not know of."""
        return self._has_lost_answer

    async def _return_unheld(self) -> None:
        """After a claim or start whose answer was lost: what it may have taken goes back.

        Nothing of it ever ran.
        """
        held = [*self._dispatcher.running, *self._completer.held_ids(), *self._buffer.since]
        statement = return_unheld_tasks(self._identity.worker_id, held)
        returned = (await self._link.run(statement))[0].value
        self._has_lost_answer = False
        if returned:
            _logger.warning(
                "gave back %d tasks claimed by a statement whose answer was lost", returned
            )

    def _request(self) -> ClaimRequest | None:
        if self._completer.is_full or not (any(self._may_have_more) or self._has_caps):
            return None
        prefetch = self._config.prefetch_buffer
        may_prefetch = prefetch is None and not self._has_caps
        starts: list[int] = []
        # Each lane its share: short tasks of one kind, taken far ahead, must not starve another.
        wanted = [more or self._has_caps for more in self._may_have_more]
        # A sparse lane finds little and needs none kept for it.
        full = [more and not sparse for more, sparse in zip(wanted, self._is_sparse, strict=True)]
        share = _MAX_ROWS // max(1, sum(full))
        child_pids: list[int] = []
        for lane, is_wanted in zip(self._lanes, wanted, strict=True):
            room = min(lane.room(may_prefetch=may_prefetch), share) if is_wanted else 0
            if lane.kind == "process":
                child_pids = lane.pids(room, self._identity.pid)
                room = len(child_pids)
            starts.append(room)
        claims = self._buffer.room(prefetch or 0, len(self._lanes))
        limit = self._settings.max_claim_per_worker
        if limit:
            claims = [min(count, max(0, limit - len(self._buffer.tasks))) for count in claims]
        if not any(starts) and not any(claims):
            return None
        now = monotonic()
        is_full_look = now >= self._full_look_at
        return ClaimRequest(
            owner_id=self._identity.worker_id,
            hostname=self._identity.hostname,
            own_pid=self._identity.pid,
            lease=claim_lease(self._config),
            queues=[queue.name for queue in self._queues],
            queue_caps=[queue.cap for queue in self._queues],
            cluster_cap=self._config.cluster_wide_cap,
            task_lanes=self._task_lanes,
            lane_starts=starts,
            lane_claims=claims,
            sparse_lanes=self._is_sparse,
            child_pids=child_pids,
            batch_limit=self._settings.max_claim_batch,
            is_full_look=is_full_look,
            counts_claims=not prefetch,
            marks={} if is_full_look else self._marks,
        )

    def _learn(
        self, request: ClaimRequest, answer: Sequence[ClaimedTask], started_at: float
    ) -> None:
        now = monotonic()
        if request.is_full_look:
            # The cheaper of the last two counts: one slow look (a cold cache) is no measure.
            before_s, self._look_cost_s = self._look_cost_s, now - started_at
            self._full_look_at = now + _FULL_LOOK_SHARE * min(before_s, self._look_cost_s)
            self._owes_full_look = False
        if request.batch_limit and sum(bool(row.id) for row in answer) >= request.batch_limit:
            return
        # Lanes whose search ended at its limit, in a backlog of other lanes.
        unsearched = {row.lane - 1 for row in answer if not row.id and row.args}
        if unsearched:
            self._wake.set()
        for lane, is_filled in enumerate(self._filled_lanes(request, answer)):
            if request.lane_starts[lane] or request.lane_claims[lane]:
                self._is_sparse[lane] = not is_filled
                self._may_have_more[lane] = is_filled or lane in unsearched
        if not all(self._may_have_more) and not request.is_full_look:
            self._owes_full_look = True

    def _move_marks(self, request: ClaimRequest, rows: Sequence[ClaimedTask]) -> None:
        """Forward only; but a full look that filled a lane may have left more just behind it.

        A row without id says up to where a lane was searched through; `args` is the id there.
        """
        filled = self._filled_lanes(request, rows)
        for row in rows:
            key = (row.queue_name, row.priority, row.lane)
            mark = Mark(row.enqueued_at, row.id or row.args or "")
            known = self._marks.get(key, mark)
            goes_back = request.is_full_look and filled[row.lane - 1]
            if goes_back or (mark.enqueued_at, mark.id) >= (known.enqueued_at, known.id):
                self._marks[key] = mark

    def _filled_lanes(self, request: ClaimRequest, rows: Sequence[ClaimedTask]) -> list[bool]:
        found = [0] * len(self._lanes)
        for row in rows:
            found[row.lane - 1] += bool(row.id)
        asked = map(operator.add, request.lane_starts, request.lane_claims)
        return [got >= wanted for wanted, got in zip(asked, found, strict=True)]

    def _is_idle(self) -> bool:
        return not (
            any(self._may_have_more)
            or self._owes_full_look
            or self._dispatcher.running
            or self._buffer.tasks
        )

    async def _sleep(self, stopping: asyncio.Event) -> None:
        """Until a notification, a free slot, a due row or the fallback poll, whichever is first."""
        if self._wake.is_set():
            return
        poll_s = self._config.resilience.notify_poll_interval_ms / 1000
        poll_at = monotonic() + jittered(poll_s, low=_POLL_LOW, high=_POLL_HIGH)
        times = [poll_at]
        if not any(self._may_have_more):
            await self._check_due(stopping)
        if self._due_at is not None:
            times.append(self._due_at)
        if self._owes_full_look:
            times.append(self._full_look_at)
        try:
            async with asyncio.timeout(max(0.0, min(times) - monotonic())):
                await self._wake.wait()
        except TimeoutError:
            self._may_have_more = [True] * len(self._lanes)
            if monotonic() >= poll_at:
                self._full_look_at = 0.0  # the contract's last resort leaves nothing out

    async def _check_due(self, stopping: asyncio.Event) -> None:
        """When the next waiting row becomes due; asked again only after something was told."""
        now = monotonic()
        if self._due_at is None and self._due_told_count == self._told_count:
            return
        if now - self._due_checked_at < _DUE_CHECK_S:
            self._due_at = min(self._due_at or now + _DUE_CHECK_S, now + _DUE_CHECK_S)
            return
        self._due_checked_at, self._due_told_count = now, self._told_count
        statement = next_due([queue.name for queue in self._queues])
        found = await self._link.persistently_until(
            stopping, "looking ahead", lambda: self._link.run(statement)
        )
        seconds = found[0][0].value if found else None
        self._due_at = None if seconds is None else monotonic() + max(0.0, float(seconds))
