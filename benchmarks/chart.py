"""Bars and curves as SVG, without any drawing library."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

_COLOURS = ("#1864ab", "#e8590c", "#2f9e44", "#862e9c")
_FONT = 'font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#222"'
_BAR, _LEFT, _SCALE = 22, 340, 180
_WIDTH, _HEIGHT = 720, 360
_X0, _X1, _Y0, _Y1 = 76, 556, 308, 44  # the plane of a curve: left, right, bottom, top


@dataclass(frozen=True, slots=True)
class Plot:
    """Named lines over one pair of axes."""

    title: str
    x_label: str
    y_label: str
    lines: dict[str, list[tuple[float, float]]]
    is_log: bool = True  # of the x axis
    has_log_y: bool = False  # from one up; else y starts at nought


def write_bars(path: Path, bars: Sequence[tuple[str, float]]) -> None:
    """One bar per target, best three times as long as the line it must reach."""
    width, height = _LEFT + 3 * _SCALE + 60, _BAR * len(bars) + 56
    parts = _opening(width, height)
    target = _LEFT + _SCALE
    parts.append(f'<text x="{target}" y="16" text-anchor="middle">target</text>')
    for index, (name, ratio) in enumerate(bars):
        top = 24 + index * _BAR
        length = min(ratio, 3.0) * _SCALE
        colour = _COLOURS[2] if ratio >= 1 else _COLOURS[1]
        parts.append(
            f'<text x="{_LEFT - 8}" y="{top + 13}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{_LEFT}" y="{top + 2}" width="{length:.0f}" height="{_BAR - 6}" '
            f'fill="{colour}"/>'
            f'<text x="{_LEFT + length + 6:.0f}" y="{top + 13}">{ratio:.2f} ×</text>'
        )
    parts.append(
        f'<line x1="{target}" y1="20" x2="{target}" y2="{height - 12}" stroke="#333" '
        'stroke-dasharray="4 3"/>'
    )
    _close(path, parts)


def write_curves(path: Path, plot: Plot) -> None:
    """Lines with a mark at each measured point."""
    points = [point for line in plot.lines.values() for point in line]
    xs, top = sorted({x for x, _ in points}), _round_up(max(y for _, y in points))
    parts = _opening(_WIDTH, _HEIGHT)
    parts.append(f'<text x="{_X0}" y="22" font-size="15">{escape(plot.title)}</text>')
    for value in _steps(top, plot):
        y = _y(value, top, plot)
        parts.append(
            f'<line x1="{_X0}" y1="{y:.1f}" x2="{_X1}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{_X0 - 8}" y="{y + 4:.1f}" text-anchor="end">{_short(value)}</text>'
        )
    for value in _ticks(xs, is_log=plot.is_log):
        x = _x(value, xs, is_log=plot.is_log)
        parts.append(
            f'<line x1="{x:.1f}" y1="{_Y0}" x2="{x:.1f}" y2="{_Y0 + 5}" stroke="#222"/>'
            f'<text x="{x:.1f}" y="{_Y0 + 20}" text-anchor="middle">{_short(value)}</text>'
        )
    parts.append(f'<path d="M{_X0} {_Y1}V{_Y0}H{_X1}" fill="none" stroke="#222"/>')
    centre = (_X0 + _X1) / 2
    parts.append(
        f'<text x="{centre}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(plot.x_label)}</text>'
    )
    parts.append(f'<text x="{_X0}" y="{_Y1 - 8}" fill="#666">{escape(plot.y_label)}</text>')
    for index, (name, line) in enumerate(plot.lines.items()):
        parts += _line(plot, xs, top, index, name, line)
    _close(path, parts)


def _line(
    plot: Plot,
    xs: list[float],
    top: float,
    index: int,
    name: str,
    line: Sequence[tuple[float, float]],
) -> list[str]:
    colour = _COLOURS[index % len(_COLOURS)]
    places = [(_x(x, xs, is_log=plot.is_log), _y(y, top, plot)) for x, y in line]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    if len(places) <= 20:
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    y = _Y1 + 14 + index * 20
    parts.append(
        f'<rect x="{_X1 + 14}" y="{y - 9}" width="12" height="4" fill="{colour}"/>'
        f'<text x="{_X1 + 32}" y="{y - 2}">{escape(name)}</text>'
    )
    return parts


def _x(value: float, xs: list[float], *, is_log: bool) -> float:
    low, high = xs[0], xs[-1]
    if is_log:
        value, low, high = (math.log10(max(one, 1e-9)) for one in (value, low, high))
    return _X0 + (_X1 - _X0) * (value - low) / ((high - low) or 1)


def _y(value: float, top: float, plot: Plot) -> float:
    part = math.log10(max(value, 1)) / math.log10(top) if plot.has_log_y else value / (top or 1)
    return _Y0 - (_Y0 - _Y1) * part


def _steps(top: float, plot: Plot) -> list[float]:
    if plot.has_log_y:
        return [10.0**n for n in range(12) if 10.0**n <= top]
    return [top * step / 4 for step in range(5)]


def _ticks(xs: list[float], *, is_log: bool) -> list[float]:
    if len(xs) <= 8:
        return xs
    if is_log:
        return [10.0**n for n in range(math.ceil(math.log10(xs[0])), 12) if 10.0**n <= xs[-1]]
    step = _round_up((xs[-1] - xs[0]) / 8)
    return [step * n for n in range(20) if xs[0] <= step * n <= xs[-1]]


def _round_up(value: float) -> float:
    """The next 1, 2, 4 or 8 times a power of ten: four even steps in round numbers."""
    power = 10 ** math.floor(math.log10(max(value, 1e-9)))
    return next(power * step for step in (1, 2, 4, 8, 10) if power * step >= value)


def _short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _opening(width: int, height: int) -> list[str]:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {_FONT}>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]


def _close(path: Path, parts: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")
