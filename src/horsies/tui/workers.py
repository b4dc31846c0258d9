"""The second view: workers, and the load of the chosen one over time."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import DataTable

from horsies.drawing.task_text import holds
from horsies.operations.control import place_of
from horsies.operations.history import WorkerPoint
from horsies.operations.operations import Operations
from horsies.operations.queues import WorkerInfo
from horsies.operations.words import duration, moment
from horsies.result.broker import BrokerResult
from horsies.tui.charts import Chart, Series
from horsies.tui.tables import Cell, Column, LiveTable
from horsies.tui.texts import Said
from horsies.tui.view import NOTE, Changed, View

WINDOWS = tuple(timedelta(minutes=minutes) for minutes in (5, 30, 60, 360, 1440))
_COLUMNS = (
    Column("host"),
    Column("pid", is_right=True),
    Column("state"),
    Column("procs", is_right=True),
    Column("running", is_right=True),
    Column("claimed", is_right=True),
    Column("CPU", is_right=True),
    Column("memory", is_right=True),
    Column("up", is_right=True),
    Column("queues", from_width=110),
    Column("runs", from_width=110),
)


class Workers(View):
    """A list, and below it the chosen worker with charts."""

    hint = "part of a host, state, queue or id"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "window(-1)", "Shorter", key_display="["),
        Binding("right_square_bracket", "window(1)", "Longer", key_display="]"),
        Binding("d", "drain", "Drain"),
    ]

    def __init__(self, operations: Operations) -> None:
        super().__init__(operations, "workers")
        self.table = LiveTable(_COLUMNS, id="worker-list")
        self._facts_text = Said(id="worker-facts")
        self._cpu = Chart("CPU", "warning", id="cpu")
        self._memory = Chart("memory", "primary", id="memory")
        self._load = Chart("running", "success", id="running")
        self.window = WINDOWS[2]
        self._seen: dict[str, WorkerInfo] = {}
        self._workers = self.paced(operations.workers_async, 0.5)
        self._chosen: str | None = None
        self._points = self.paced(self._read_points, 5.0)

    def compose(self) -> ComposeResult:
        yield self.table
        with Vertical(id="worker-detail"):
            yield self._facts_text
            with Horizontal(id="worker-charts"):
                yield self._cpu
                yield self._memory
                yield self._load

    async def read(self) -> None:
        found = await self._workers.get()
        self._seen = {one.snapshot.worker_id: one for one in found if self._is_sought(one)}
        self.table.show({key: self._row(one) for key, one in self._seen.items()})
        if self.table.chosen != self._chosen:
            self._chosen = self.table.chosen
            self._points.forget()
        chosen = self._seen.get(self._chosen or "")
        self._facts_text.say(self._facts(chosen))
        points = [] if chosen is None else await self._points.get()
        self._draw_charts(points, None if chosen is None else chosen.snapshot.read_at)

    def _is_sought(self, worker: WorkerInfo) -> bool:
        row = worker.snapshot
        return self.matches(place_of(row), row.worker_id, worker.state, *row.queues)

    async def _read_points(self) -> BrokerResult[list[WorkerPoint]]:
        assert self._chosen is not None
        return await self.operations.worker_history_async(self._chosen, self.window)

    def _row(self, worker: WorkerInfo) -> Sequence[Cell]:
        row = worker.snapshot
        return (
            row.hostname,
            str(row.pid),
            self.state(worker.state),
            str(row.processes),
            f"{row.tasks_running:,}/{row.slot_count:,}",
            f"{row.tasks_claimed:,}",
            "" if row.cpu_percent is None else f"{row.cpu_percent:.0f} %",
            f"{row.memory_usage_mb or 0:,.0f} + {row.children_memory_mb or 0:,.0f} MB",
            duration(row.read_at - row.worker_started_at),
            ", ".join(row.queues),
            holds(worker),
        )

    def _facts(self, worker: WorkerInfo | None) -> Text:
        if worker is None:
            return Text("No worker was seen in the last hour. Start one: horsies worker MODULE")
        row = worker.snapshot
        head = Text.assemble((place_of(row), "bold"), f"  {row.worker_id}  ")
        head.append_text(self.state(worker.state))
        facts = [
            f"queues {', '.join(row.queues)}",
            f"since {moment(row.worker_started_at, row.read_at)}",
            f"seen {duration(row.read_at - row.snapshot_at)} ago",
        ]
        held = holds(worker)
        return Text("\n").join([head, Text(" · ".join(facts), "dim"), Text(f"runs {held or '–'}")])

    def _draw_charts(self, points: Sequence[WorkerPoint], now: datetime | None) -> None:
        memory = [(p.at, (p.memory_mb or 0.0) + (p.children_memory_mb or 0.0)) for p in points]
        cpu = [(p.at, p.cpu_percent) for p in points if p.cpu_percent is not None]
        running = [(p.at, p.running) for p in points]
        self._cpu.show(Series("CPU", cpu, now, self.window, 100.0, " %"))
        self._memory.show(Series("memory", memory, now, self.window, unit=" MB"))
        self._load.show(Series("running", running, now, self.window, 1.0))

    def on_data_table_row_highlighted(self, _event: DataTable.RowHighlighted) -> None:
        self.post_message(Changed())

    def action_window(self, step: int) -> None:
        """The next shorter or longer window."""
        place = WINDOWS.index(self.window) + step
        self.window = WINDOWS[min(max(place, 0), len(WINDOWS) - 1)]
        self._points.forget()
        self.post_message(Changed())

    def action_drain(self) -> None:
        worker = self._seen.get(self._chosen or "")
        if worker is None:
            return
        worker_id, place = worker.snapshot.worker_id, place_of(worker.snapshot)
        self.change(
            f"Drain worker {place}? It finishes what it runs and ends.",
            lambda: self.operations.drain_worker_async(worker_id, note=NOTE),
            lambda _id: f"{place} drains; it takes nothing new within five seconds",
        )
