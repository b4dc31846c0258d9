"""Small charts out of block characters: an area over time, and bars. Pure but for the widget."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.text import Text
from textual.widget import Widget

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_BARS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class Series:
    """Values over time. `limit` is the top of the chart, at least; `unit` follows the numbers."""

    title: str
    points: Sequence[tuple[datetime, float]] = ()
    now: datetime | None = None
    window: timedelta = timedelta(hours=1)
    limit: float = 0.0
    unit: str = ""


def columns(series: Series, width: int) -> list[float | None]:
    """The average of the points in each column of the chart; None where there are none."""
    found: list[list[float]] = [[] for _ in range(width)]
    if series.now is not None:
        start = series.now - series.window
        for at, number in series.points:
            place = int((at - start) / series.window * width)
            if 0 <= place < width:
                found[place].append(number)
    averages = [sum(numbers) / len(numbers) if numbers else None for numbers in found]
    return _bridged(averages, len(series.points))


def _bridged(averages: list[float | None], count: int) -> list[float | None]:
    """Fill columns between points that only a wide chart pulls apart; true gaps stay."""
    reach = -(-len(averages) // max(count, 1)) if count > 1 else 0
    bridged = list(averages)
    last, since = None, 0
    for place, number in enumerate(averages):
        if number is not None:
            last, since = number, 0
        elif last is not None and (since := since + 1) < max(reach, 2):
            bridged[place] = last
    return bridged


def area(values: Sequence[float | None], height: int, top: float) -> list[str]:
    """Lines of blocks, the highest first; what is not zero can be seen."""
    lines: list[str] = []
    for row in range(height - 1, -1, -1):
        line = ""
        for number in values:
            filled = 0.0 if number is None or top <= 0 else number / top * height * 8
            if number and row == 0:
                filled = max(filled, 1.0)
            line += _EIGHTHS[round(min(max(filled - row * 8, 0), 8))]
        lines.append(line)
    return lines


def bar(share: float, width: int) -> str:
    """A horizontal bar; what is not zero can be seen."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    eighths = max(eighths, 1) if share > 0 else 0
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_BARS[rest] if rest else "")).ljust(width)


class Chart(Widget):
    """One series over time, with its latest value and the top of its scale."""

    def __init__(self, title: str, colour: str, id: str) -> None:  # noqa: A002 - as Textual names it
        super().__init__(id=id)
        self.series = Series(title)
        self._colour = colour

    def show(self, series: Series) -> None:
        if series != self.series:
            self.series = series
            self.refresh()

    def render(self) -> Text:
        width, height = self.size.width, self.size.height - 2
        if width < 10 or height < 1:
            return Text()
        series = self.series
        values = columns(series, width)
        top = max([series.limit, *(number for _, number in series.points)])
        latest = _number(series.points[-1][1], series.unit) if series.points else "no data yet"
        head = Text.assemble((series.title, "bold"), f"  {latest}")
        scale = f"top {_number(top, series.unit)}".rjust(width - head.cell_len)
        if scale.startswith(" "):
            head.append(scale, "dim")
        left, right = f"{_span(series.window)} ago", "now"
        foot = Text(left + right.rjust(width - len(left)), "dim")
        shade = self.app.theme_variables.get(self._colour, "")
        body = Text("\n".join(area(values, height, top)), shade)
        return Text("\n").join([head, body, foot])


def _number(number: float, unit: str) -> str:
    text = f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
    return f"{text}{unit}"


def _span(window: timedelta) -> str:
    minutes = int(window.total_seconds() // 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h"
