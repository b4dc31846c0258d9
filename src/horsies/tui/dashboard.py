"""The first view: the whole system at a glance."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from horsies.clock import utc_now
from horsies.operations.counting import SystemTotals
from horsies.operations.history import EndPoint
from horsies.operations.listing import TaskCount
from horsies.operations.operations import Operations
from horsies.operations.queues import QueueInfo, SystemStatus
from horsies.operations.words import duration
from horsies.result.broker import BrokerResult
from horsies.tui.charts import Chart, Series, bar
from horsies.tui.reading import value
from horsies.tui.tables import Cell, Column, LiveTable
from horsies.tui.texts import Said
from horsies.tui.themes import colour
from horsies.tui.view import NOTE, View

_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_STEP = timedelta(seconds=10)  # 100,000 ends at 5,000 per second fill two
_STEPS = 6  # of a minute
_OVERLOADED_CPU = 90.0
_BAR = 8
_QUEUES = (
    Column("queue"),
    Column("due", is_right=True),
    Column("oldest", is_right=True),
    Column("later", is_right=True),
    Column("running", is_right=True),
    Column("cap", is_right=True),
    Column("workers", is_right=True),
    Column("per min", is_right=True),
    Column("failed", is_right=True),
    Column("start p50", is_right=True, from_width=100),
    Column("p95", is_right=True, from_width=100),
    Column("run p50", is_right=True, from_width=120),
    Column("p95", is_right=True, from_width=120),
)


class Dashboard(View):
    """Key figures, states, charts of the last hour, alerts and queues."""

    hint = "part of a queue's name"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("s", "steer", "Pause/resume queue")]

    def __init__(self, operations: Operations) -> None:
        super().__init__(operations, "dashboard")
        self._figures = Said(id="figures")
        self._task_counts = Said(id="task-counts")
        self._workflow_counts = Said(id="workflow-counts")
        self._alerts = Said(id="alerts")
        self._utilisation = Chart("utilisation", "primary", id="utilisation")
        self._rate = Chart("ended per minute", "success", id="throughput")
        self.table = LiveTable(_QUEUES, id="queues")
        self._status = self.paced(lambda: operations.status_async(window=_HOUR), 1.0)
        self._totals = self.paced(operations.totals_async, 1.0)
        self._load = self.paced(operations.load_history_async, 5.0)
        self._throughput = self.paced(self._read_throughput, 5.0)
        self._ends: dict[datetime, EndPoint] = {}
        self._queues: dict[str, QueueInfo] = {}

    def compose(self) -> ComposeResult:
        yield self._figures
        with Horizontal(id="counts"):
            yield self._task_counts
            yield self._workflow_counts
            yield self._alerts
        with Horizontal(id="charts"):
            yield self._utilisation
            yield self._rate
        yield self.table

    async def read(self) -> None:
        status, totals = await self._status.get(), await self._totals.get()
        load, ends = await self._load.get(), await self._throughput.get()
        self._queues = {queue.name: queue for queue in status.queues}
        alive = [worker for worker in status.workers if worker.state == "alive"]
        now = alive[0].snapshot.read_at if alive else utc_now()
        self._task_counts.say(self._counts("Tasks", totals.tasks))
        self._workflow_counts.say(self._counts("Workflows", totals.workflows))
        self._alerts.say(self._alarms(status, totals))
        shares = [(p.at, 100 * min(1.0, p.running / p.slots)) for p in load if p.slots]
        self._utilisation.show(Series("utilisation", shares, now, _HOUR, 100.0, " %"))
        # The last step has only begun, so it would look like a sudden fall.
        rates = [(e.at, float(_STEPS) * (e.completed + e.failed + e.expired)) for e in ends[:-1]]
        lately = sum(number for _, number in rates[-_STEPS:]) / _STEPS
        self._figures.say(_figures(status, lately))
        self._rate.show(Series("ended per minute", rates, now, _HOUR))
        rows = {name: self._row(one) for name, one in self._queues.items() if self.matches(name)}
        self.table.show(rows)

    async def _read_throughput(self) -> BrokerResult[list[EndPoint]]:
        """Add what ended since the last look to what is known of the hour."""
        since = utc_now() - max(self._ends) if self._ends else _HOUR
        window = min(max(since + _STEP, _MINUTE), _HOUR)
        result = await self.operations.throughput_async(window, _STEP)
        self._ends |= {point.at: point for point in value(result)}
        first = utc_now() - _HOUR
        self._ends = {at: point for at, point in sorted(self._ends.items()) if at >= first}
        return result.map(lambda _points: list(self._ends.values()))

    def _counts(self, title: str, counts: Mapping[str, TaskCount]) -> Text:
        most = max((count.number for count in counts.values()), default=0)
        text = Text.assemble((title, "bold"))
        for status, count in counts.items():
            shade = colour(status, is_dark=self.is_dark)
            text.append(f"\n{status.capitalize():<9} ", shade)
            text.append(f"{count!s:>7} ")
            text.append(bar(count.number / most if most else 0.0, _BAR), shade)
        return text

    def _alarms(self, status: SystemStatus, totals: SystemTotals) -> Text:
        found = list(_alarms(status, totals))
        text = Text.assemble(("Alerts", "bold"))
        for alarm in found:
            text.append(f"\n▲ {alarm}", colour("red", is_dark=self.is_dark))
        if not found:
            text.append("\n✔ none", colour("green", is_dark=self.is_dark))
        return text

    def _row(self, queue: QueueInfo) -> Sequence[Cell]:
        name = Text(queue.name)
        if _is_paused(queue):
            name.append(" paused", colour("PAUSED", is_dark=self.is_dark))
        pace = queue.pace
        failed = pace.failed_count + pace.expired_count
        no_worker = colour("red", is_dark=self.is_dark) if not queue.worker_count else ""
        return (
            name,
            str(queue.due),
            duration(queue.waiting_for),
            str(queue.later),
            f"{queue.running_count + queue.claimed_count:,}",
            "" if queue.max_concurrency is None else f"{queue.max_concurrency:,}",
            Text(str(queue.worker_count), no_worker),
            f"{pace.per_minute:,.1f}",
            Text(f"{failed:,}", colour("red", is_dark=self.is_dark)) if failed else "",
            *(_seconds(pace.start_latencies, at) for at in (0, 1)),
            *(_seconds(pace.run_times, at) for at in (0, 1)),
        )

    def action_steer(self) -> None:
        """Pause or resume the chosen queue."""
        queue = self._queues.get(self.table.chosen or "")
        if queue is None:
            return
        name, steer = queue.name, self.operations
        if _is_paused(queue):
            self.change(
                f"Resume queue {name}? Its tasks start at once.",
                lambda: steer.resume_queue_async(name, note=NOTE),
                lambda done: f"{name} goes on" if done else f"{name} was not paused",
            )
        else:
            self.change(
                f"Pause queue {name}? What runs goes on, nothing more starts.",
                lambda: steer.pause_queue_async(name, note=NOTE),
                lambda done: f"{name} is paused" if done else f"{name} was paused already",
            )


def _figures(status: SystemStatus, per_minute: float) -> Text:
    alive = [worker for worker in status.workers if worker.state == "alive"]
    slots = sum(worker.snapshot.slot_count for worker in alive)
    busy = sum(worker.snapshot.tasks_running for worker in alive)
    running = sum(queue.running_count for queue in status.queues)
    due = sum(queue.due.number for queue in status.queues)
    least = "+" if any(queue.due.is_least for queue in status.queues) else ""
    share = f"{100 * min(1.0, busy / slots):.0f} %" if slots else "–"
    figures = {
        "workers": f"{len(alive):,}",
        "slots": f"{slots:,}",
        "utilisation": share,
        "running": f"{running:,}",
        "due": f"{due:,}{least}",
        "per min": f"{per_minute:,.0f}",
    }
    text = Text(no_wrap=True, overflow="ellipsis")
    for name, figure in figures.items():
        text.append(f"{name} ", "dim")
        text.append(f"{figure}   ", "bold")
    return text


def _alarms(status: SystemStatus, totals: SystemTotals) -> Iterator[str]:
    alive = [worker.snapshot for worker in status.workers if worker.state == "alive"]
    if not alive:
        yield "no worker is alive"
    lost = len(status.workers) - len(alive)
    if lost:
        yield f"workers lost: {lost} (key 5)"
    for row in alive:
        place = f"{row.hostname}:{row.pid}"
        if (row.cpu_percent or 0.0) >= _OVERLOADED_CPU:
            yield f"{place} CPU {row.cpu_percent:.0f} %"
        elif row.tasks_claimed > row.slot_count <= row.tasks_running:
            yield f"{place} overloaded: {row.tasks_claimed:,} wait in it"
    if totals.stale_claims.number:
        yield f"stale claims: {totals.stale_claims}"
    for queue in status.queues:
        if queue.due.number and not queue.worker_count:
            yield f"no worker serves {queue.name}"


def _is_paused(queue: QueueInfo) -> bool:
    return queue.control is not None and queue.control.paused_at is not None


def _seconds(values: Sequence[float], at: int) -> str:
    return duration(timedelta(seconds=values[at])) if values else ""
