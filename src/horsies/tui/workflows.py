"""The fourth view: workflows with their progress."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from horsies.drawing.workflow_text import ran_for
from horsies.operations.operations import Operations
from horsies.operations.words import duration, moment
from horsies.states import WorkflowStatus
from horsies.tui.charts import bar
from horsies.tui.reading import value
from horsies.tui.tables import NARROW, Cell, Column, LiveTable
from horsies.tui.texts import Said
from horsies.tui.themes import colour
from horsies.tui.view import FilteredView, Opened, StateFilter, state_bindings
from horsies.tui.workflow_actions import WorkflowActions
from horsies.workflows.listing import WorkflowFilter, WorkflowPage
from horsies.workflows.statements import ListedWorkflow

_STATES = {
    "p": "PENDING",
    "u": "RUNNING",
    "o": "COMPLETED",
    "f": "FAILED",
    "h": "PAUSED",
    "c": "CANCELLED",
}
_PAGE = 200
_BAR = 12
_SHORT_BAR = 5
_COLUMNS = (
    Column("id"),
    Column("name"),
    Column("status"),
    Column("nodes", is_right=True),
    Column("done", is_right=True, from_width=100),
    Column("progress"),
    Column("started", from_width=100),
    Column("took", is_right=True),
)


class Workflows(FilteredView):
    """Workflows that were started by themselves, newest first."""

    hint = "part of a name or id"
    BINDINGS: ClassVar[list[BindingType]] = [
        *state_bindings(_STATES),
        Binding("s", "steer", "Pause/resume"),
        Binding("k", "cancel", "Cancel"),
    ]

    def __init__(self, operations: Operations) -> None:
        super().__init__(operations, "workflows", StateFilter(_STATES, id="workflow-states"))
        self._note_text = Said(id="workflow-note", classes="note")
        self.table = LiveTable(_COLUMNS, id="workflow-list")
        self.listed: dict[str, ListedWorkflow] = {}
        self._actions = WorkflowActions(operations, self.change)

    def compose(self) -> ComposeResult:
        yield self.states
        yield self._note_text
        yield self.table

    async def read(self) -> None:
        states = self.states
        chosen = [] if states.is_all else [WorkflowStatus(one) for one in sorted(states.chosen)]
        page = WorkflowPage([], None)
        if states.chosen:
            wanted = WorkflowFilter(chosen)
            page = value(await self.operations.workflows_async(wanted, limit=_PAGE))
        found = [row for row in page.workflows if self.matches(row.id, row.name)]
        self.listed = {row.id: row for row in found}
        self.table.show({row.id: self._row(row) for row in found})
        self._note_text.say(self._note(page, len(found)))

    def _row(self, row: ListedWorkflow) -> Sequence[Cell]:
        is_wide = self.app.size.width >= 130
        width = _BAR if self.app.size.width >= NARROW else _SHORT_BAR
        share = row.done_count / row.node_count if row.node_count else 0.0
        return (
            row.id if is_wide else row.id[:13],
            row.name,
            self.state(row.status),
            f"{row.node_count:,}",
            f"{row.done_count:,}",
            Text(f"{bar(share, width)} {100 * share:3.0f} %", self._shade(row.status)),
            "" if row.started_at is None else moment(row.started_at, row.read_at),
            duration(ran_for(row)),
        )

    def _shade(self, status: str) -> str:
        return colour(status, is_dark=self.is_dark)

    def _note(self, page: WorkflowPage, count: int) -> Text:
        if not count:
            return Text("No workflow matches. Press a for all states, / to search.")
        text = f"the newest {_PAGE}" if page.next_before else f"{count:,} workflows"
        return Text(f"{text} that match {self.sought} (Esc: all)" if self.sought else text)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        self.post_message(Opened("workflow", str(event.row_key.value)))

    @property
    def _chosen(self) -> ListedWorkflow | None:
        return self.listed.get(self.table.chosen or "")

    def action_steer(self) -> None:
        if (row := self._chosen) is not None:
            self._actions.steer(row.id, row.name, row.status)

    def action_cancel(self) -> None:
        if (row := self._chosen) is not None:
            self._actions.cancel(row.id, row.name)
