"""The fifth view: how old stored snapshots are, workers that are gone, and who steered what."""

from collections.abc import Sequence
from datetime import timedelta

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from horsies.operations.control import AuditEntry, place_of
from horsies.operations.counting import SnapshotAge
from horsies.operations.operations import Operations
from horsies.operations.queues import WorkerInfo
from horsies.operations.words import duration, moment
from horsies.tui.charts import bar
from horsies.tui.tables import Cell, Column, LiveTable
from horsies.tui.texts import Said
from horsies.tui.themes import colour
from horsies.tui.view import View

_DAY = timedelta(days=1)
_BAR = 30
_DEAD = (
    Column("worker"),
    Column("host"),
    Column("pid", is_right=True),
    Column("state"),
    Column("last seen", is_right=True),
    Column("holds", is_right=True),
    Column("queues"),
)
_AUDIT = (
    Column("when"),
    Column("who"),
    Column("did"),
    Column("to"),
    Column("why", from_width=100),
)


class Maintenance(View):
    """What an operator looks after now and then."""

    hint = "part of a host, id, name or action"

    def __init__(self, operations: Operations) -> None:
        super().__init__(operations, "maintenance")
        self._ages_text = Said(id="ages")
        self._dead_note = Said(id="dead-note", classes="note")
        self.table = LiveTable(_DEAD, id="dead")
        self.audited = LiveTable(_AUDIT, id="audit")
        self._ages = self.paced(operations.snapshot_ages_async, 10.0)
        self._workers = self.paced(lambda: operations.workers_async(window=_DAY), 2.0)
        self._audit = self.paced(lambda: operations.audit_async(limit=100), 2.0)

    def compose(self) -> ComposeResult:
        yield self._ages_text
        yield self._dead_note
        yield self.table
        yield Static(Text("Who steered what"), classes="note")
        yield self.audited

    async def read(self) -> None:
        ages, workers = await self._ages.get(), await self._workers.get()
        audit = await self._audit.get()
        self._ages_text.say(self._histogram(ages))
        dead = [one for one in workers if one.state != "alive" and self._is_sought(one)]
        note = f"{len(dead)} of {len(workers)} workers of the last day have no snapshot for 30 s"
        self._dead_note.say(Text(note))
        self.table.show({one.snapshot.worker_id: self._dead_row(one) for one in dead})
        sought = [one for one in audit if self.matches(one.done_by, one.action, one.target)]
        self.audited.show({str(one.id): _audit_row(one) for one in sought})

    def _is_sought(self, worker: WorkerInfo) -> bool:
        return self.matches(place_of(worker.snapshot), worker.snapshot.worker_id)

    def _histogram(self, ages: Sequence[SnapshotAge]) -> Text:
        most = max((age.count.number for age in ages), default=0)
        text = Text.assemble(("Snapshots of workers, by age", "bold"))
        for age in ages:
            label = "older" if age.under is None else f"under {duration(age.under)}"
            share = age.count.number / most if most else 0.0
            text.append(f"\n{label:<12} {age.count!s:>9}  ")
            text.append(bar(share, _BAR), colour("blue", is_dark=self.is_dark))
        return text

    def _dead_row(self, worker: WorkerInfo) -> Sequence[Cell]:
        row = worker.snapshot
        return (
            row.worker_id[:8],
            row.hostname,
            str(row.pid),
            self.state(worker.state),
            f"{duration(row.read_at - row.snapshot_at)} ago",
            f"{len(worker.tasks):,}",
            ", ".join(row.queues),
        )


def _audit_row(entry: AuditEntry) -> Sequence[Cell]:
    return (
        moment(entry.done_at, entry.done_at),
        entry.done_by,
        entry.action,
        entry.target,
        entry.reason or "",
    )
