"""Text on the screen: pieces that are redrawn when they say something new, and what acts on it."""

from rich.segment import Segment
from rich.text import Text
from textual.color import Color
from textual.filter import LineFilter
from textual.widgets import Static

from horsies.visible import harmless


class Said(Static):
    """A refresh that changes nothing sends nothing to the terminal, which may be far away."""

    def __init__(self, id: str, classes: str | None = None) -> None:  # noqa: A002 - as Textual names it
        super().__init__(id=id, classes=classes)
        self.said = Text()

    def say(self, text: Text) -> None:
        if text != self.said or text.spans != self.said.spans:
            self.said = text
            self.update(text)


class Harmless(LineFilter):
    """What tables hold was written by others: it never acts on the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.control else Segment(harmless(segment.text), segment.style)
            for segment in segments
        ]
