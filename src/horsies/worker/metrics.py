"""What one worker counts of its own tasks, batches, slots and event loop."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from horsies.observability.metrics import SIZES, Family, Histogram, gauge
from horsies.version import __version__
from horsies.worker.completer import Recorded
from horsies.worker.held_task import HeldTask
from horsies.worker.holdings import Holdings
from horsies.worker.lanes import Lane
from horsies.worker.settings import WorkerContext

_UNKNOWN = "(unknown)"  # a row may hold any name: labels must not grow with what is sent
_OF_TASKS = ("task", "queue")


class WorkerMetrics:
    """Counts on the event loop, read from another thread."""

    def __init__(self, context: WorkerContext, task_names: Iterable[str]) -> None:
        self._context = context
        self._known = frozenset(task_names)
        self._queues = frozenset(queue.name for queue in context.queues)
        self._ended: Counter[tuple[str, ...]] = Counter()
        self._waits: dict[tuple[str, ...], Histogram] = {}
        self._runs: dict[tuple[str, ...], Histogram] = {}
        self._claimed_at: tuple[str, float] = ("", 0.0)
        self.claim_sizes = Histogram(SIZES)
        self.write_sizes = Histogram(SIZES)
        self.loop_lags = Histogram()

    def started(self, task: HeldTask) -> None:
        """An attempt begins: how long had it been due?"""
        waited_s = self._waited_s(task)
        if waited_s is not None:
            _of(self._waits, self._labels(task)).observe(waited_s)

    def recorded(self, ended: Sequence[Recorded]) -> None:
        """Ends are committed."""
        self.write_sizes.observe(len(ended))
        for one in ended:
            labels = self._labels(one.completion.task)
            self._ended[(*labels, one.outcome)] += 1
            if one.completion.duration_s is not None:
                _of(self._runs, labels).observe(one.completion.duration_s)

    def _labels(self, task: HeldTask) -> tuple[str, str]:
        return (
            task.task_name if task.task_name in self._known else _UNKNOWN,
            task.queue_name if task.queue_name in self._queues else _UNKNOWN,
        )

    def _waited_s(self, task: HeldTask) -> float | None:
        known, claimed_at = self._claimed_at
        try:
            if known != task.claim:  # a claim has one instant for hundreds of tasks
                claimed_at = datetime.fromisoformat(task.claim).timestamp()
                self._claimed_at = (task.claim, claimed_at)
            return max(0.0, claimed_at - datetime.fromisoformat(task.enqueued_at).timestamp())
        except ValueError:  # a row by hand, due since ever
            return None

    def families(self, holdings: Holdings, lanes: Sequence[Lane], blocked_s: float) -> list[Family]:
        """All of it, as it stands now."""
        slots: dict[tuple[str, ...], float] = {(lane.kind,): lane.slots for lane in lanes}
        busy: dict[tuple[str, ...], float] = {
            (lane.kind,): min(lane.in_flight, lane.slots) for lane in lanes
        }
        ahead: dict[tuple[str, ...], float] = {
            (lane.kind,): max(0, lane.in_flight - lane.slots) for lane in lanes
        }
        kind = ("execution",)
        return [
            *self.counted(),
            gauge("horsies_worker_loop_blocked_seconds",
                  "For how long the event loop has been blocked.", blocked_s),
            Family("horsies_worker_slots", "gauge", "Attempts that can run at once.", kind, slots),
            Family("horsies_worker_busy_slots", "gauge", "Slots with an attempt.", kind, busy),
            Family("horsies_worker_ahead_tasks", "gauge", "Started tasks behind busy slots.", kind,
                   ahead),
            gauge("horsies_worker_buffered_tasks", "Claimed tasks that wait for a slot.",
                  len(holdings.buffer.tasks)),
            gauge("horsies_worker_unwritten_outcomes", "Ends that the database does not have yet.",
                  len(holdings.completer.held_ids())),
        ]  # fmt: skip

    def counted(self) -> list[Family]:
        """What has been counted since the start."""
        identity = self._context.identity
        names = (identity.worker_id, identity.hostname, __version__)
        return [
            Family("horsies_worker_info", "gauge", "Which worker this is.",
                   ("worker_id", "hostname", "version"), {names: 1.0}),
            Family("horsies_attempts", "counter", "Attempts that have ended, by outcome.",
                   (*_OF_TASKS, "outcome"), dict(self._ended)),
            Family("horsies_wait_seconds", "histogram",
                   "From when an attempt was due until it was claimed.", _OF_TASKS,
                   dict(self._waits)),
            Family("horsies_run_seconds", "histogram", "How long attempts ran.", _OF_TASKS,
                   dict(self._runs)),
            Family("horsies_worker_claim_tasks", "histogram", "Tasks per claim that found any.",
                   (), {(): self.claim_sizes}),
            Family("horsies_worker_write_tasks", "histogram", "Ends per write.",
                   (), {(): self.write_sizes}),
            Family("horsies_worker_loop_lag_seconds", "histogram",
                   "How much later than asked the event loop woke, four times a second.",
                   (), {(): self.loop_lags}),
        ]  # fmt: skip


def _of(histograms: dict[tuple[str, ...], Histogram], labels: tuple[str, ...]) -> Histogram:
    found = histograms.get(labels)
    if found is None:
        found = histograms[labels] = Histogram()
    return found
