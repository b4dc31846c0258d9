"""A table that is refreshed in place: cursor and scroll stay where the reader put them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.text import Text
from textual.events import Resize
from textual.widgets import DataTable

Cell = str | Text
NARROW = 100


class Column(NamedTuple):
    """A column; one with `from_width` is shown only in terminals that are so wide.

    `short` is its name in narrow ones.
    """

    name: str
    is_right: bool = False
    from_width: int = 0
    short: str = ""


class LiveTable(DataTable[Text]):
    """Rows by key. A refresh writes only cells that changed, as long as the rows are the same."""

    def __init__(self, columns: Sequence[Column], id: str) -> None:  # noqa: A002 - as Textual names it
        super().__init__(
            cursor_type="row",
            cursor_foreground_priority="renderable",  # a state keeps its colour under the cursor
            show_row_labels=False,
            id=id,
        )
        self._all_columns = columns
        self._shown: list[int] = []
        self._is_narrow = False
        self._contents: dict[str, Sequence[Cell]] = {}

    @property
    def chosen(self) -> str | None:
        """The key of the row under the cursor."""
        keys = list(self._contents)
        return keys[self.cursor_row] if 0 <= self.cursor_row < len(keys) else None

    def on_resize(self, _event: Resize) -> None:
        width = self.app.size.width
        shown = [i for i, column in enumerate(self._all_columns) if width >= column.from_width]
        is_narrow = width < NARROW
        if (shown, is_narrow) != (self._shown, self._is_narrow):
            self._shown, self._is_narrow = shown, is_narrow
            self._refill(with_columns=True)

    def show(self, rows: Mapping[str, Sequence[Cell]]) -> None:
        """Show these rows, in this order."""
        before, self._contents = self._contents, dict(rows)
        if not self._shown:
            return
        if list(before) != list(rows):
            self._refill(chosen=self._key_at(list(before), self.cursor_row))
            return
        for key, cells in rows.items():
            for place in self._shown:
                if cells[place] != before[key][place]:
                    self.update_cell(key, str(place), self._cell(place, cells), update_width=True)

    def _refill(self, *, chosen: str | None = None, with_columns: bool = False) -> None:
        """Write all anew in one redraw, with the cursor on the same row as before."""
        chosen = chosen or self.chosen
        row, scroll_y = self.cursor_row, self.scroll_y
        with self.app.batch_update(), self.prevent(self.RowHighlighted):
            self.clear(columns=with_columns)
            if with_columns:
                for place in self._shown:
                    self.add_column(self._label(place), key=str(place))
            for key, cells in self._contents.items():
                self.add_row(*(self._cell(place, cells) for place in self._shown), key=key)
            keys = list(self._contents)
            row = keys.index(chosen) if chosen in self._contents else min(row, len(keys) - 1)
            if keys:
                self.move_cursor(row=row, scroll=False)
                self.scroll_to(y=scroll_y, animate=False)
        # Widths are known only when the table is idle; what was drawn before must not stay.
        self.call_after_refresh(self.notify_style_update)

    def _label(self, place: int) -> Text:
        column = self._all_columns[place]
        name = column.short if self._is_narrow and column.short else column.name
        return Text(name, justify="right" if column.is_right else "left")

    def _cell(self, place: int, cells: Sequence[Cell]) -> Text:
        cell = cells[place]
        text = cell.copy() if isinstance(cell, Text) else Text(cell)
        text.justify = "right" if self._all_columns[place].is_right else "left"
        return text

    @staticmethod
    def _key_at(keys: Sequence[str], row: int) -> str | None:
        return keys[row] if 0 <= row < len(keys) else None
