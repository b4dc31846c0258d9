"""The overlays: a question before something is changed, and the keys."""

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static

KEYS = {
    "Views": {
        "1 … 5": "dashboard, workers, tasks, workflows, maintenance",
        "/": "search in the view; Enter keeps it, Esc drops it",
        "r": "refresh now",
        "t": "next colour theme",
        "q, Esc": "close what is open, or quit",
        "Ctrl+z": "suspend; fg comes back",
    },
    "Tables": {
        "↑ ↓ PgUp PgDn": "select a row",
        "Tab": "next table",
        "Enter": "open a task or workflow; expand a worker",
        "y": "copy the JSON of the open detail",
    },
    "States": {
        "p c u o f": "toggle pending, claimed, running, completed, failed",
        "x l": "toggle expired, cancelled (tasks)",
        "h c": "toggle paused (held), cancelled (workflows)",
        "a n": "all states, no state",
        "[ ]": "shorter, longer window of the charts (workers)",
    },
    "Actions, each with a question": {
        "e E": "enqueue again: the failed task, all that are listed",
        "g": "run again as a new task",
        "k": "cancel the task or workflow",
        "s": "pause or resume the queue or workflow",
        "d": "drain the worker",
    },
}
FILTER_WORDS = (
    "Search words of tasks: status:failed task:charge_* queue:mail tag:vip error:CODE worker:host "
    "since:2h until:10m kwargs.order=42, or the beginning of an id."
)


class Confirm(ModalScreen[bool]):
    """Ask before something is changed; No is what Enter means until one chooses."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
        Binding("left,right,tab", "other", "Choose", show=False),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Text(self._question), id="question")
            with Horizontal(classes="buttons"):
                yield Button("No (n)", id="no")
                yield Button("Yes (y)", variant="warning", id="yes")

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)

    def action_other(self) -> None:
        self.focus_next()


class Help(ModalScreen[None]):
    """All keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,escape,q,enter", "dismiss", "Close")
    ]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="help"):
            for title, keys in KEYS.items():
                table = Table(box=None, pad_edge=False, show_header=False)
                table.add_column(width=15, style="bold", no_wrap=True)
                table.add_column()
                for key, meaning in keys.items():
                    table.add_row(key, meaning)
                yield Static(title, classes="title")
                yield Static(table)
            yield Static(FILTER_WORDS, classes="title")
