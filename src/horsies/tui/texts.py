"""A piece of text that is redrawn only when it says something new."""

from rich.text import Text
from textual.widgets import Static


class Said(Static):
    """A refresh that changes nothing sends nothing to the terminal, which may be far away."""

    def __init__(self, id: str, classes: str | None = None) -> None:  # noqa: A002 - as Textual names it
        super().__init__(id=id, classes=classes)
        self.said = Text()

    def say(self, text: Text) -> None:
        if text != self.said or text.spans != self.said.spans:
            self.said = text
            self.update(text)
