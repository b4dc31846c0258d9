"""Charts as SVG, drawn by pure functions: no script is needed to see them.

Colours are classes of the style sheet. Every column of points has a text for the pointer.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup, escape

WIDTH, HEIGHT = 640, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 6, 8, 22
_LINES = 4
_DURATIONS = (
    *(size * step for size in (0.001, 0.01, 0.1, 1) for step in (2, 4, 10)),
    *(20, 40, 60, 120, 240, 480, 1_200, 2_400, 3_600),
    *(3_600 * hours for hours in (2, 4, 8, 12, 24, 48, 96, 192)),
)
Format = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart; None where nothing was measured. `tone` is a colour's name."""

    name: str
    tone: str
    values: Sequence[float | None]
    is_filled: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over the same instants, each with how its values read."""

    title: str
    starts: Sequence[datetime]
    step: timedelta
    series: Sequence[Series]
    format: Format
    is_duration: bool = False


def draw(chart: Chart) -> Markup:
    """The chart with its scale, its legend and a text for every column."""
    highest = max((v for one in chart.series for v in one.values if v is not None), default=0)
    top = _round_duration(highest) if chart.is_duration else _round_number(highest)
    parts = [
        *_grid(chart, top),
        *_times(chart),
        *(part for one in chart.series for part in _line(one, top)),
        *_columns(chart),
    ]
    svg = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, _in_words(chart), Markup("").join(parts)
    )
    return svg + _legend(chart)


def _round_duration(highest: float) -> float:
    """As `_round_number`, in seconds, minutes, hours or days."""
    return next((top for top in _DURATIONS if top >= highest), None) or _round_number(highest)


def _round_number(highest: float) -> float:
    """The least round number that is not below, so that the scale reads well and rarely jumps."""
    if highest <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(highest))
    return next(size * step for step in (1, 2, 4, 5, 8, 10) if size * step >= highest * 0.999)


def _x(number: int, count: int) -> float:
    width = WIDTH - _LEFT - _RIGHT
    return _LEFT + width * (number + 0.5) / max(count, 1)


def _y(value: float, top: float) -> float:
    height = HEIGHT - _TOP - _BOTTOM
    return _TOP + height * (1 - value / top)


def _grid(chart: Chart, top: float) -> list[Markup]:
    made: list[Markup] = []
    for number in range(_LINES + 1):
        value = top * number / _LINES
        y = f"{_y(value, top):.1f}"
        made.append(
            Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                _LEFT, WIDTH - _RIGHT, y, y
            )
        )
        if number % 2 == 0:
            made.append(
                Markup('<text x="{}" y="{}" text-anchor="end" dy="0.32em">{}</text>').format(
                    _LEFT - 6, y, chart.format(value)
                )
            )
    return made


def _times(chart: Chart) -> list[Markup]:
    """Three instants below; the browser shows them in the reader's zone."""
    count = len(chart.starts)
    if not count:
        return []
    is_long = chart.step * count >= timedelta(days=2)
    made: list[Markup] = []
    for number, anchor in ((0, "start"), (count // 2, "middle"), (count - 1, "end")):
        at = chart.starts[number]
        text = Markup(
            '<text x="{:.1f}" y="{}" text-anchor="{}" data-at="{}" data-shape="{}">{}</text>'
        )
        shape, shown = ("day", f"{at:%d %b}") if is_long else ("minute", f"{at:%H:%M}")
        made.append(
            text.format(_x(number, count), HEIGHT - 4, anchor, at.isoformat(), shape, shown)
        )
    return made


def _line(series: Series, top: float) -> list[Markup]:
    """A path with gaps where nothing was measured; a lonely value is a point."""
    count = len(series.values)
    runs: list[list[tuple[float, float]]] = [[]]
    for number, value in enumerate(series.values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((_x(number, count), _y(min(value, top), top)))
    made: list[Markup] = []
    for run in filter(None, runs):
        if len(run) == 1:
            point = Markup('<circle class="point tone-{}" cx="{:.1f}" cy="{:.1f}" r="2"/>')
            made.append(point.format(series.tone, *run[0]))
            continue
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in run)
        if series.is_filled:
            base = f"{_y(0, top):.1f}"
            area = f"M{run[0][0]:.1f} {base}L{path}L{run[-1][0]:.1f} {base}Z"
            made.append(Markup('<path class="area tone-{}" d="{}"/>').format(series.tone, area))
        made.append(Markup('<path class="line tone-{}" d="M{}"/>').format(series.tone, path))
    return made


def _columns(chart: Chart) -> list[Markup]:
    """A strip per column with its text; they are many, so they are written the short way."""
    count = len(chart.starts)
    width = (WIDTH - _LEFT - _RIGHT) / max(count, 1)
    shape = f"{_TOP}h{width:.2f}V{HEIGHT - _BOTTOM}h-{width:.2f}z"
    return [
        Markup(  # noqa: S704  # numbers, and a text that is escaped
            f'<path class="hit" d="M{_LEFT + width * number:.1f} {shape}"'
            f' data-tip="{escape(_tip(chart, number))}"/>'
        )
        for number in range(count)
    ]


def _tip(chart: Chart, number: int) -> str:
    lines = [f"{{{chart.starts[number].isoformat()}}}"]
    for one in chart.series:
        value = one.values[number]
        lines.append(f"{one.name}: {'–' if value is None else chart.format(value)}")
    return "\n".join(lines)


def _legend(chart: Chart) -> Markup:
    entry = Markup(
        '<li><svg viewBox="0 0 10 10" aria-hidden="true">'
        '<rect width="10" height="10" rx="3" class="tone-{}"/></svg>{} <b>{}</b></li>'
    )
    entries = (entry.format(one.tone, one.name, _latest(one, chart.format)) for one in chart.series)
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(entries))


def _latest(series: Series, form: Format) -> str:
    value = next((value for value in reversed(series.values) if value is not None), None)
    return "–" if value is None else form(value)


def _in_words(chart: Chart) -> str:
    said = "; ".join(f"{one.name} {_latest(one, chart.format)}" for one in chart.series)
    return f"{chart.title}, latest: {said}"


def bar(share: float, tone: str, text: str) -> Markup:
    """A small horizontal bar that is filled by a share of 0 to 1."""
    return Markup(
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img"'
        ' aria-label="{}"><rect class="back" width="100" height="8" rx="4"/>'
        '<rect class="tone-{}" width="{:.1f}" height="8" rx="4"/></svg>'
    ).format(text, tone, 100 * min(max(share, 0.0), 1.0))


def spark(values: Sequence[float | None], tone: str, text: str) -> Markup:
    """A line without scale, for a row of a table."""
    known = [value for value in values if value is not None]
    top = max(known, default=0) or 1
    width = 100 / max(len(values) - 1, 1)
    points = " ".join(
        f"{number * width:.1f},{27 - 25 * value / top:.1f}"
        for number, value in enumerate(values)
        if value is not None
    )
    return Markup(
        '<svg class="spark" viewBox="0 0 100 28" preserveAspectRatio="none" role="img"'
        ' aria-label="{}"><polyline class="line tone-{}" points="{}"/></svg>'
    ).format(escape(text), tone, points)
