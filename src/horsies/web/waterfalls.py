"""When the nodes of a workflow ran, as SVG: one bar each, below one another. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from horsies.drawing.rails import NodeGroup
from horsies.operations.words import duration
from horsies.web.graphs import status_of, title_of

_WIDTH, _LEFT, _RIGHT, _ROW, _TOP = 1000, 190, 80, 22, 22
_LINES = 5
_NAME_LENGTH = 26
ROWS_LIMIT = 200
_TONES = {"COMPLETED": "good", "FAILED": "bad", "RUNNING": "busy"}


@dataclass(frozen=True, slots=True)
class _Bar:
    """From the first begin of the nodes of a box to their last end."""

    group: NodeGroup
    start: datetime
    end: datetime


def draw_waterfall(groups: Sequence[NodeGroup], now: datetime) -> Markup | None:
    """The boxes of a graph that have begun, in that order; None if none has."""
    bars = sorted(filter(None, (_bar_of(group, now) for group in groups)), key=lambda b: b.start)
    del bars[ROWS_LIMIT:]
    if not bars:
        return None
    first = bars[0].start
    span = max(max(bar.end for bar in bars) - first, timedelta(milliseconds=1))
    height = _TOP + _ROW * len(bars) + 4
    return Markup(
        '<svg class="waterfall" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>'
    ).format(
        _WIDTH,
        height,
        f"When {len(bars)} nodes ran, over {duration(span)}",
        Markup("").join(_scale(span, height)),
        Markup("").join(_drawn(number, bar, first, span) for number, bar in enumerate(bars)),
    )


def _bar_of(group: NodeGroup, now: datetime) -> _Bar | None:
    begun = [(node.started_at, node.completed_at) for node in group.members if node.started_at]
    if not begun:
        return None
    start = min(at for at, _ in begun)
    return _Bar(group, start, max(start, *(end or now for _, end in begun)))


def _scale(span: timedelta, height: int) -> list[Markup]:
    line = Markup(
        '<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{height}"/>'
        '<text x="{x:.1f}" y="14" text-anchor="middle">{said}</text>'
    )
    return [
        line.format(
            x=_x(span * number / _LINES, span),
            top=_TOP - 2,
            height=height,
            said=duration(span * number / _LINES),
        )
        for number in range(_LINES + 1)
    ]


def _drawn(number: int, bar: _Bar, first: datetime, span: timedelta) -> Markup:
    y = _TOP + _ROW * number
    x, end = _x(bar.start - first, span), _x(bar.end - first, span)
    name, status, said = title_of(bar.group), status_of(bar.group), duration(bar.end - bar.start)
    lines = [name, bar.group.first.task_name, f"{status.lower()}, {said}"]
    return Markup(
        '<g data-key="w{index}" data-tip="{tip}"><text x="{left}" y="{text_y}" text-anchor="end">'
        '{name}</text><rect class="tone-{tone}" x="{x:.1f}" y="{y}" width="{width:.1f}"'
        ' height="{height}" rx="3"/><text x="{after:.1f}" y="{text_y}">{said}</text></g>'
    ).format(
        index=bar.group.first.task_index,
        tip="\n".join([*dict.fromkeys(lines), f"began after {duration(bar.start - first)}"]),
        left=_LEFT - 10,
        name=name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…",
        tone=_TONES.get(status, "quiet"),
        x=x,
        y=y + 4,
        width=max(end - x, 2.0),
        height=_ROW - 8,
        after=max(end, x + 2) + 6,
        text_y=y + _ROW - 7,
        said=said,
    )


def _x(offset: timedelta, span: timedelta) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (offset / span)
