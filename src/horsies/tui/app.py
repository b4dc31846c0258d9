"""`Top`: five views over one system, read again and again, and the keys that belong to all."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.widgets import ContentSwitcher, Footer, Input

from horsies.app import Horsies
from horsies.clock import monotonic, utc_now
from horsies.operations.filter_words import FilterError
from horsies.tui.dashboard import Dashboard
from horsies.tui.detail import Detail, TaskScreen, WorkflowScreen
from horsies.tui.dialogs import Help
from horsies.tui.maintenance import Maintenance
from horsies.tui.reading import ReadError
from horsies.tui.tables import NARROW
from horsies.tui.tasks import Tasks
from horsies.tui.texts import Harmless, Said
from horsies.tui.themes import NAMES, THEMES, colour
from horsies.tui.view import Changed, Opened, View
from horsies.tui.workers import Workers
from horsies.tui.workflows import Workflows

_VIEWS = ("dashboard", "workers", "tasks", "workflows", "maintenance")
# An unresponsive server is given up after so long; the last picture stays.
_READ_LIMIT_S = 10.0
_RETRY_S = 1.0
# Looking takes at most a fifth of one connection's time, however slow the server is.
_REST = 4


class Top(App[None]):
    """The viewer. A lost connection is shown and retried; it never ends it."""

    CSS_PATH = "styles.tcss"
    TITLE = "horsies top"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-wide")]  # noqa: RUF012 - as in Textual
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(number), f"view('{name}')", name.capitalize(), show=False)
            for number, name in enumerate(_VIEWS, 1)
        ),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("r", "reread", "Refresh", show=False),  # seldom needed; 80 columns are full
        Binding("t", "theme", "Theme"),
        Binding("q", "close", "Quit"),
        Binding("escape", "close", "Close", show=False),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False),
    ]

    def __init__(self, app: Horsies, *, tick_rate: float = 4.0, is_dark: bool = True) -> None:
        super().__init__()
        self.horsies = app
        self._tick_s = 1 / tick_rate
        self._wake = asyncio.Event()
        self.trouble: str | None = None
        self.read_count = 0
        self._detail: Detail | None = None
        self._bar = Said(id="bar")
        self._trouble = Said(id="trouble")
        self._search = Input(id="search", compact=True)
        self._search_trouble = Said(id="search-trouble")
        operations = app.operations
        views = (Dashboard, Workers, Tasks, Workflows, Maintenance)
        self._views: dict[str, View] = dict(
            zip(_VIEWS, (make(operations) for make in views), strict=True)
        )
        self.view = self._views[_VIEWS[0]]
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = NAMES[0] if is_dark else NAMES[1]

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), Harmless()]

    def compose(self) -> ComposeResult:
        yield self._bar
        yield self._trouble
        with ContentSwitcher(initial=self.view.id):
            yield from self._views.values()
        yield self._search
        yield self._search_trouble
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, lambda _theme: self.wake())
        self.app_resume_signal.subscribe(self, self._redraw)
        self.view.table.focus()
        self.run_worker(self._watch(), name="reading")

    def _redraw(self, _app: object) -> None:
        """After Ctrl+z and fg: the shell has written over the screen meanwhile."""
        self.screen.refresh(layout=True)

    async def _watch(self) -> None:
        """Read what is shown, again and again, as long as the viewer runs."""
        while True:
            self._wake.clear()
            started = monotonic()
            shown = self._detail or self.view
            try:
                async with asyncio.timeout(_READ_LIMIT_S):
                    await shown.read()
            except ReadError as error:
                self.trouble = str(error)
            except TimeoutError:
                self.trouble = f"the database did not answer within {_READ_LIMIT_S:.0f} s"
            else:
                self.trouble = None
            self.read_count += 1
            self._draw_bar()
            rest_s = max(self._tick_s, _REST * (monotonic() - started))
            await self._rest(_RETRY_S if self.trouble else rest_s)

    def wake(self) -> None:
        """Read at once."""
        self._wake.set()

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    def _draw_bar(self) -> None:
        is_dark = self.current_theme.dark
        text = Text(no_wrap=True, overflow="ellipsis")
        if self.size.width >= NARROW:  # 80 columns have room for the clock instead
            text.append("horsies ", "bold")
        for number, name in enumerate(_VIEWS, 1):
            is_shown = name == self.view.id
            text.append(f" {number} {name.capitalize()} ", "bold reverse" if is_shown else "")
        if self.trouble is None:
            text.append(f" ● {utc_now().astimezone():%H:%M:%S}", colour("green", is_dark=is_dark))
        else:
            text.append(" ✘ away", colour("red", is_dark=is_dark))
        self._bar.say(text)
        self._trouble.display = self.trouble is not None
        if self.trouble is not None:
            line = " ".join(self.trouble.split())
            self._trouble.say(Text(f"No answer from the database, trying again: {line}"))

    def on_changed(self, message: Changed) -> None:
        if message.is_stored:
            self.view.forget()
        self.wake()

    def on_opened(self, message: Opened) -> None:
        make = TaskScreen if message.kind == "task" else WorkflowScreen
        self._detail = make(self.horsies, message.thing_id)
        self.push_screen(self._detail, lambda _none: self._show_view())

    def _show_view(self) -> None:
        self._detail = None
        self.wake()

    async def action_view(self, name: str) -> None:
        while len(self.screen_stack) > 1:
            await self.pop_screen()
        self.view = self._views[name]
        self.query_one(ContentSwitcher).current = name
        self._hide_search()
        self._draw_bar()
        self._show_view()

    def action_reread(self) -> None:
        self.view.forget()
        self.wake()

    def action_theme(self) -> None:
        place = NAMES.index(self.theme) if self.theme in NAMES else 0
        self.theme = NAMES[(place + 1) % len(NAMES)]

    def action_help(self) -> None:
        self.push_screen(Help())

    def action_search(self) -> None:
        if len(self.screen_stack) > 1:
            return
        self._search.placeholder = self.view.hint
        self._search.value = self.view.sought
        self._search.display = True
        self._search.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._search_trouble.display = False
        if not isinstance(self.view, Tasks) and event.input.display:
            self._seek(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self._seek(event.value):
            self._hide_search()

    def _seek(self, text: str) -> bool:
        try:
            self.view.search(text.strip())
        except FilterError as error:
            self._search_trouble.say(Text(str(error)))
            self._search_trouble.display = True
            return False
        self.wake()
        return True

    def _hide_search(self) -> None:
        self._search.display = False
        self._search_trouble.display = False
        self.view.table.focus()

    def action_close(self) -> None:
        """Close the search, drop it, collapse what is open, or quit."""
        if self._search.display:
            self.view.close()
            self._hide_search()
        elif not self.view.close():
            self.exit()
        self.wake()
