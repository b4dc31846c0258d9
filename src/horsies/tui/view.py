"""What all views share: how they read, search and close, and how they ask before they change."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message

from horsies.operations.control import Note
from horsies.operations.operations import Operations
from horsies.result import Err
from horsies.result.broker import BrokerResult
from horsies.tui.dialogs import Confirm
from horsies.tui.reading import Paced
from horsies.tui.tables import NARROW, LiveTable
from horsies.tui.texts import Said
from horsies.tui.themes import colour, state_text

if TYPE_CHECKING:
    from textual.app import App

T = TypeVar("T")
Act: TypeAlias = Callable[[], Awaitable[BrokerResult[T]]]
Told: TypeAlias = Callable[[T], str]
# Who it was, the audit knows by itself: this user on this machine.
NOTE = Note(reason="by hand, in horsies top")


class Changed(Message):
    """Something else is to be shown; `is_stored` says that the database has changed, too."""

    def __init__(self, *, is_stored: bool = False) -> None:
        super().__init__()
        self.is_stored = is_stored


class Opened(Message):
    """A task or workflow is to be shown in full."""

    def __init__(self, kind: Literal["task", "workflow"], thing_id: str) -> None:
        super().__init__()
        self.kind = kind
        self.thing_id = thing_id


class View(Vertical):
    """One of the five pages. `hint` says what its search looks for; `table` has the keys first.

    Views keep their parts by name: one that is closed while it reads draws into the void.
    """

    hint = "search"
    table: LiveTable

    def __init__(self, operations: Operations, id: str) -> None:  # noqa: A002 - as Textual names it
        super().__init__(id=id, classes="view")
        self.operations = operations
        self.sought = ""
        self._paced: list[Paced[Any]] = []

    def paced(self, read: Callable[[], Awaitable[BrokerResult[T]]], every_s: float) -> Paced[T]:
        """A read that is not worth repeating at every refresh."""
        paced = Paced(read, every_s)
        self._paced.append(paced)
        return paced

    def forget(self) -> None:
        """Read all anew next time."""
        for paced in self._paced:
            paced.forget()

    @abstractmethod
    async def read(self) -> None:
        """Read what the view shows and draw it; raises `ReadError`."""

    def search(self, text: str) -> None:
        """Narrow what is shown; raises `FilterError` if the text means nothing."""
        self.sought = text

    def close(self) -> bool:
        """Drop the search or collapse what is open; False if there was nothing."""
        was_sought, self.sought = self.sought, ""
        return bool(was_sought)

    def matches(self, *texts: str) -> bool:
        """Whether one of the texts holds what is sought."""
        return any(self.sought.lower() in text.lower() for text in texts)

    @property
    def is_dark(self) -> bool:
        return self.app.current_theme.dark

    def state(self, status: str) -> Text:
        return state_text(status, is_dark=self.is_dark)

    def change(self, question: str, act: Act[T], told: Told[T]) -> None:
        """Ask, and if the answer is yes, do it and say what came of it."""
        self.run_worker(change(self.app, question, act, told), name="action")


async def change(app: "App[Any]", question: str, act: Act[T], told: Told[T]) -> None:
    """The same for screens."""
    if not await app.push_screen_wait(Confirm(question)):
        return
    result = await act()
    if isinstance(result, Err):
        app.notify(result.err_value.message, severity="error", timeout=10)
    else:
        app.notify(told(result.ok_value))
    app.post_message(Changed(is_stored=True))


class StateFilter(Said):
    """Which states are shown, each with the key that toggles it."""

    def __init__(self, keys: dict[str, str], id: str) -> None:  # noqa: A002 - as Textual names it
        super().__init__(id=id, classes="states")
        self._keys = keys
        self.chosen = set(keys.values())

    @property
    def is_all(self) -> bool:
        return len(self.chosen) == len(self._keys)

    def toggle(self, status: str) -> None:
        self.chosen ^= {status}
        self.draw()

    def choose(self, *, are_all: bool) -> None:
        self.chosen = set(self._keys.values()) if are_all else set()
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self.draw())

    def draw(self) -> None:
        gap = "" if self.app.size.width < NARROW else " "
        text = Text(no_wrap=True, overflow="ellipsis")
        for key, status in self._keys.items():
            text.append(f"{key}{gap}", "bold")
            word = status.capitalize()
            if status in self.chosen:
                shade = colour(status, is_dark=self.app.current_theme.dark)
                text.append(f"●{gap}{word}", shade)
            else:
                text.append(f"○{gap}{word}", "dim")
            text.append(f" {gap}")
        self.say(text)


def state_bindings(keys: Mapping[str, str]) -> list[BindingType]:
    """The keys that toggle states, and those for all and none."""
    toggles = [
        Binding(key, f"toggle_state('{status}')", status.capitalize(), show=False)
        for key, status in keys.items()
    ]
    choices = [
        Binding("a", "choose(True)", "All", show=False),
        Binding("n", "choose(False)", "None", show=False),
    ]
    return [*toggles, *choices]


class FilteredView(View):
    """A view of things in some states; its keys are `state_bindings`."""

    def __init__(self, operations: Operations, id: str, states: StateFilter) -> None:  # noqa: A002 - as Textual names it
        super().__init__(operations, id)
        self.states = states

    def action_toggle_state(self, status: str) -> None:
        self.states.toggle(status)
        self.post_message(Changed())

    def action_choose(self, are_all: bool) -> None:
        self.states.choose(are_all=are_all)
        self.post_message(Changed())
