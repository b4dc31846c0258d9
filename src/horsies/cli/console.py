"""The console of the commands that print tables and colours."""

import io
import os
import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook
from rich.segment import Segment

from horsies.visible import visible


def make_console(piped_width: int = 160) -> Console:
    """A console for this terminal; what is read by programs is not cut at 80 columns.

    Nothing that is printed is markup, and only rich's own colours are commands to the terminal.
    """
    console = _console()
    if not is_unicode(console) and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # names and messages may hold anything
    is_sized = console.is_terminal or "COLUMNS" in os.environ
    return console if is_sized else _console(piped_width)


def is_unicode(console: Console) -> bool:
    return console.encoding.lower().startswith("utf")


def _console(width: int | None = None) -> Console:
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    console.push_render_hook(_ShowAll())
    return console


class _ShowAll(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Shown(one) for one in renderables]


class _Shown:
    """The same, with everything visible that is not a command of rich's own."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        for text, style, control in console.render(self._renderable, options):
            yield Segment(text if control else visible(text), style, control)
