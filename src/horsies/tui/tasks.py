"""The third view: tasks by worker and state, and those that match the filters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from horsies.drawing.task_text import in_words, took
from horsies.operations.control import place_of
from horsies.operations.counting import SystemTotals, WorkerTotal
from horsies.operations.filter_words import parse_filter
from horsies.operations.filters import TaskFilter
from horsies.operations.listing import TaskPage
from horsies.operations.operations import Operations
from horsies.operations.queues import WorkerInfo
from horsies.operations.statements import ListedRow
from horsies.operations.words import duration, moment
from horsies.tui.reading import value
from horsies.tui.tables import Cell, Column, LiveTable
from horsies.tui.task_actions import TaskActions
from horsies.tui.texts import Said
from horsies.tui.view import Changed, FilteredView, Opened, StateFilter, state_bindings

_STATES = {
    "p": "PENDING",
    "c": "CLAIMED",
    "u": "RUNNING",
    "o": "COMPLETED",
    "f": "FAILED",
    "x": "EXPIRED",
    "l": "CANCELLED",
}
_ALL = "all"
_NOBODY = "nobody"
_PAGE = 200
_TOTALS = (
    Column("worker"),
    Column("pending", is_right=True),
    Column("claimed", is_right=True),
    Column("running", is_right=True),
    Column("completed", is_right=True, short="compl."),
    Column("failed", is_right=True),
    Column("expired", is_right=True),
    Column("cancelled", is_right=True, short="canc."),
)
_COLUMNS = (
    Column("id"),
    Column("task"),
    Column("queue", from_width=100),
    Column("status"),
    Column("sent", from_width=100),
    Column("took", is_right=True),
    Column("what"),
)


class _Totals(NamedTuple):
    whole: SystemTotals
    by_worker: list[WorkerTotal]
    seen: list[WorkerInfo]


class Tasks(FilteredView):
    """Totals above, the list of tasks below; Enter on a worker shows only its tasks."""

    hint = "status:failed task:charge_* queue:mail since:2h kwargs.order=42, or an id"
    BINDINGS: ClassVar[list[BindingType]] = [
        *state_bindings(_STATES),
        Binding("e", "requeue", "Enqueue"),
        Binding("E", "requeue_all", "Enqueue all", key_display="E"),
        Binding("g", "rerun", "Run again"),
        Binding("k", "cancel", "Cancel"),
    ]

    def __init__(self, operations: Operations) -> None:
        super().__init__(operations, "tasks", StateFilter(_STATES, id="task-states"))
        self.totals = LiveTable(_TOTALS, id="task-workers")
        self._note_text = Said(id="task-note", classes="note")
        self.table = LiveTable(_COLUMNS, id="task-list")
        self._totals = self.paced(operations.totals_async, 1.0)
        self._by_worker = self.paced(operations.worker_totals_async, 2.0)
        self._workers = self.paced(operations.workers_async, 5.0)
        self._sought = TaskFilter()
        self.worker: str | None = None
        self.listed: dict[str, ListedRow] = {}
        self._actions = TaskActions(operations, self.change)

    def compose(self) -> ComposeResult:
        yield self.states
        yield self.totals
        yield self._note_text
        yield self.table

    async def read(self) -> None:
        totals = _Totals(
            await self._totals.get(), await self._by_worker.get(), await self._workers.get()
        )
        self.totals.show(self._total_rows(totals))
        wanted = self.wanted
        if wanted is None:
            page = TaskPage([], None, is_cut_short=False)
        else:
            page = value(await self.operations.tasks_async(wanted, limit=_PAGE))
        self.listed = {task.id: task for task in page.tasks}
        self.table.show({task.id: self._row(task) for task in page.tasks})
        self._note_text.say(self._note(page))

    @property
    def wanted(self) -> TaskFilter | None:
        """The search, narrowed to the chosen states and worker; None if nothing can match."""
        states = self.states
        wanted = self._sought if self.worker is None else replace(self._sought, worker=self.worker)
        if states.is_all:
            return wanted
        asked = wanted.statuses or tuple(_STATES.values())
        chosen = tuple(status for status in asked if status in states.chosen)
        return replace(wanted, statuses=chosen) if chosen else None

    def search(self, text: str) -> None:
        self._sought = parse_filter(text)
        super().search(text)

    def close(self) -> bool:
        if super().close():
            self._sought = TaskFilter()
            return True
        was_open, self.worker = self.worker, None
        if was_open is not None:
            self.totals.focus()
        return was_open is not None

    def _total_rows(self, totals: _Totals) -> dict[str, Sequence[Cell]]:
        places = {one.snapshot.worker_id: place_of(one.snapshot) for one in totals.seen}
        counts: dict[str, dict[str, str]] = {
            _ALL: {status: str(count) for status, count in totals.whole.tasks.items()}
        }
        for worker_id in places:
            counts[worker_id] = {}
        for total in totals.by_worker:
            counts.setdefault(total.worker_id or _NOBODY, {})[total.status] = f"{total.number:,}"
        return {key: self._total_row(key, places, row) for key, row in counts.items()}

    def _total_row(
        self, key: str, places: Mapping[str, str], counts: Mapping[str, str]
    ) -> Sequence[Cell]:
        mark = "▾" if key == (self.worker or _ALL) else "▸"
        names = {_ALL: "all tasks", _NOBODY: "no worker"}
        name = names.get(key) or places.get(key, key[:8])
        cells = (self._count(counts.get(status, ""), status) for status in _STATES.values())
        return (f"{mark} {name}", *cells)

    def _count(self, number: str, status: str) -> Text:
        text = self.state(status)
        return Text(number, text.style) if number not in ("", "0") else Text("·", "dim")

    def _row(self, task: ListedRow) -> Sequence[Cell]:
        is_wide = self.app.size.width >= 130
        return (
            task.id if is_wide else task.id[:13],
            task.task_name,
            task.queue_name,
            self.state(task.status),
            "" if task.sent_at is None else moment(task.sent_at, task.read_at),
            duration(took(task)),
            in_words(task),
        )

    def _note(self, page: TaskPage) -> Text:
        parts = [f"the newest {_PAGE}" if page.next_before else f"{len(page.tasks):,} tasks"]
        if page.is_cut_short:
            parts = [f"{len(page.tasks):,} found so far; narrow the search to look further"]
        if self.worker is not None:
            parts.append(f"of worker {self.worker[:8]} (Esc: of all)")
        if self.sought:
            parts.append(f"that match {self.sought} (Esc: all)")
        if not page.tasks and not page.is_cut_short:
            parts = ["No task matches. Press a for all states, / to search."]
        return Text(" ".join(parts))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter: expand or collapse a worker, or open a task."""
        key = str(event.row_key.value)
        if event.data_table.id == "task-list":
            self.post_message(Opened("task", key))
            return
        self.worker = None if key in (_ALL, _NOBODY, self.worker) else key
        self._keep_focus()
        self.post_message(Changed())

    def _keep_focus(self) -> None:
        """Expanding leads to the tasks, collapsing back to the workers."""
        (self.totals if self.worker is None else self.table).focus()

    @property
    def _chosen(self) -> ListedRow | None:
        return self.listed.get(self.table.chosen or "")

    def action_requeue(self) -> None:
        if (task := self._chosen) is not None:
            self._actions.requeue(task.id, task.task_name)

    def action_rerun(self) -> None:
        if (task := self._chosen) is not None:
            self._actions.rerun(task.id, task.task_name)

    def action_cancel(self) -> None:
        if (task := self._chosen) is not None:
            self._actions.cancel(task.id, task.task_name, task.status)

    async def action_requeue_all(self) -> None:
        if (wanted := self.wanted) is not None:
            await self._actions.requeue_all(self.app, wanted)
