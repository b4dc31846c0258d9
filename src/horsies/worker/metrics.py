"""What one worker counts of its own tasks, batches, slots and event loop."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from horsies.observability.metrics import SIZES, Family, Histogram, gauge
from horsies.version import __version__
from horsies.worker.completer import Recorded
from horsies.worker.held_task import HeldTask
from horsies.worker.holdings import Holdings
from horsies.worker.lanes import Lane
from horsies.worker.settings import WorkerContext

_UNKNOWN = "(unknown)"  # a row may hold any name: labels must not grow with what is sent
_OF_TASKS = ("task", "queue")
_NEVER = datetime.min.replace(tzinfo=UTC)


class _Series:
    """What is counted under one pair of labels."""

    __slots__ = ("ended", "runs", "waits")

    def __init__(self) -> None:
        self.ended: dict[str, int] = {}
        self.waits = Histogram()
        self.runs = Histogram()


class WorkerMetrics:
    """Counts on the event loop, a batch at a time; read from another thread."""

    def __init__(self, context: WorkerContext, task_names: Iterable[str]) -> None:
        self._context = context
        self._known = frozenset(task_names)
        self._queues = frozenset(queue.name for queue in context.queues)
        self._series: dict[tuple[str, str], _Series] = {}
        self.claim_sizes = Histogram(SIZES)
        self.write_sizes = Histogram(SIZES)
        self.loop_lags = Histogram()

    def claimed(self, tasks: Sequence[HeldTask]) -> None:
        """A claim is committed: how long had its tasks been due?"""
        self.claim_sizes.observe(len(tasks))
        claim, claimed_at, due, waited_s = "", _NEVER, "", 0.0
        name, queue, waits = "", "", list[float]()
        read = datetime.fromisoformat
        for task in tasks:
            # A claim and a bulk send have each one instant for hundreds of tasks.
            if task.enqueued_at != due or task.claim != claim:
                due = ""
                try:
                    if task.claim != claim:
                        claimed_at, claim = read(task.claim), task.claim
                    waited_s = (claimed_at - read(task.enqueued_at)).total_seconds()
                except ValueError:  # a row by hand, due since ever
                    continue
                due = task.enqueued_at
            if task.task_name != name or task.queue_name != queue:  # most are like the last one
                self._waited(name, queue, waits)
                name, queue, waits = task.task_name, task.queue_name, []
            waits.append(waited_s)
        self._waited(name, queue, waits)

    def _waited(self, name: str, queue: str, waits: list[float]) -> None:
        if waits:
            self._of(name, queue).waits.observe_all(waits)

    def recorded(self, ended: Sequence[Recorded]) -> None:
        """Ends are committed."""
        self.write_sizes.observe(len(ended))
        name, queue, how, count, runs = "", "", "", 0, list[float]()
        for completion, outcome, _ in ended:
            task = completion.task
            if task.task_name != name or task.queue_name != queue or outcome != how:
                self._ended(name, queue, how, count, runs)
                name, queue, how, count, runs = task.task_name, task.queue_name, outcome, 0, []
            count += 1
            if completion.duration_s is not None:
                runs.append(completion.duration_s)
        self._ended(name, queue, how, count, runs)

    def _ended(self, name: str, queue: str, how: str, count: int, runs: list[float]) -> None:
        if count:
            series = self._of(name, queue)
            series.ended[how] = series.ended.get(how, 0) + count
            series.runs.observe_all(runs)

    def _of(self, task_name: str, queue_name: str) -> _Series:
        found = self._series.get((task_name, queue_name))
        if found is None:
            labels = (
                task_name if task_name in self._known else _UNKNOWN,
                queue_name if queue_name in self._queues else _UNKNOWN,
            )
            found = self._series.setdefault(labels, _Series())
        return found

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
        series = list(self._series.items())  # one step for the interpreter: the worker goes on
        ended: dict[tuple[str, ...], float] = {
            (*labels, outcome): count
            for labels, one in series
            for outcome, count in list(one.ended.items())
        }
        return [
            Family("horsies_worker_info", "gauge", "Which worker this is.",
                   ("worker_id", "hostname", "version"), {names: 1.0}),
            Family("horsies_attempts", "counter", "Attempts that have ended, by outcome.",
                   (*_OF_TASKS, "outcome"), ended),
            Family("horsies_wait_seconds", "histogram",
                   "From when an attempt was due until it was claimed.", _OF_TASKS,
                   {labels: one.waits for labels, one in series}),
            Family("horsies_run_seconds", "histogram", "How long attempts ran.", _OF_TASKS,
                   {labels: one.runs for labels, one in series}),
            Family("horsies_worker_claim_tasks", "histogram", "Tasks per claim that found any.",
                   (), {(): self.claim_sizes}),
            Family("horsies_worker_write_tasks", "histogram", "Ends per write.",
                   (), {(): self.write_sizes}),
            Family("horsies_worker_loop_lag_seconds", "histogram",
                   "How much later than asked the event loop woke, four times a second.",
                   (), {(): self.loop_lags}),
        ]  # fmt: skip
