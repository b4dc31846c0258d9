"""Bars and curves as SVG, drawn by matplotlib: it comes with the extra `bench`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, NullLocator

_COLOURS = ("#1864ab", "#e8590c", "#2f9e44", "#862e9c")
# Text stays text, and two runs over the same figures write the same file.
_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "horsies", "font.family": "sans-serif",
          "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"], "font.size": 9}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plot:
    """Named lines over one pair of axes."""

    title: str
    x_label: str
    y_label: str
    lines: dict[str, list[tuple[float, float]]]
    is_log: bool = True  # of the x axis
    has_log_y: bool = False  # from one up; else y starts at nought


@dataclass(frozen=True, slots=True)
class Panel:
    """One bar per name, the first of them ours; `None` has no bar but a word."""

    title: str
    hint: str
    unit: str
    bars: list[tuple[str, float | None]]
    word: str = "never"
    is_log: bool = False


@dataclass(frozen=True, slots=True)
class Theme:
    ink: str
    faint: str
    own: str
    peer: str


LIGHT = Theme(ink="#1f2328", faint="#59636e", own="#1864ab", peer="#b6bec8")
DARK = Theme(ink="#f0f6fc", faint="#9198a1", own="#4dabf7", peer="#4b535d")


def write_bars(path: Path, bars: Sequence[tuple[str, float]]) -> None:
    """One bar per target, at most three times as long as the line it must reach."""
    with _canvas(path, 9.4, 0.24 * len(bars) + 0.7) as canvas:
        axes = canvas.add_subplot()
        lengths = [min(ratio, 3.0) for _, ratio in bars]
        colours = [_COLOURS[2] if ratio >= 1 else _COLOURS[1] for _, ratio in bars]
        drawn = axes.barh([name for name, _ in bars], lengths, color=colours, gid="bar")
        axes.bar_label(drawn, [f"{ratio:.2f} ×" for _, ratio in bars], padding=4)
        axes.axvline(1, color="#333", linestyle="--", linewidth=1)
        axes.set(title="target = 1", xlim=(0, 3.3), ylim=(len(bars) - 0.4, -0.6))
        _bare(axes)


def write_curves(path: Path, plot: Plot) -> None:
    """Lines with a mark at each measured point."""
    with _canvas(path, 7.5, 3.75) as canvas:
        axes = canvas.add_subplot()
        for (name, line), colour in zip(plot.lines.items(), _COLOURS * 4, strict=False):
            mark = "o" if len(line) <= 20 else ""
            axes.plot(*zip(*line, strict=True), marker=mark, markersize=4, color=colour, label=name)
        axes.set_title(plot.title, loc="left")
        axes.set(xlabel=plot.x_label, ylabel=plot.y_label)
        axes.set_xscale("log" if plot.is_log else "linear")
        axes.set_yscale("log" if plot.has_log_y else "linear")
        axes.set_ylim(bottom=1 if plot.has_log_y else 0)
        axes.grid(axis="y", color="#ddd")
        axes.spines[["top", "right"]].set_visible(False)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _place: short(value)))
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def write_panels(path: Path, panels: Sequence[Panel], theme: Theme) -> None:
    """Side by side; on a transparent ground, for a page that is light or dark."""
    rows = max(len(panel.bars) for panel in panels)
    with _canvas(path, 10.0, 0.32 * rows + 1.0, is_transparent=True) as canvas:
        for axes, panel in zip(
            canvas.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            _panel(axes, panel, theme)


def _panel(axes: Axes, panel: Panel, theme: Theme) -> None:
    names = [name for name, _ in panel.bars]
    known = [value for _, value in panel.bars if value]
    least = min(known) / 3 if panel.is_log else 0.0  # where bars begin
    lengths = [(value or least) - least for _, value in panel.bars]
    colours = [theme.own, *[theme.peer] * (len(names) - 1)]
    drawn = axes.barh(names, lengths, left=least, color=colours, height=0.62, gid="bar")
    words = [
        panel.word if value is None else f"{short(value)} {panel.unit}".strip()
        for _, value in panel.bars
    ]
    labels = axes.bar_label(drawn, words, padding=4, color=theme.ink)
    labels[0].set_fontweight("bold")
    if panel.is_log:
        axes.set_xscale("log")
        axes.set_xlim(least, max(known) * 12)
    else:
        axes.set_xlim(0, max(known) * 1.45)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_title(f"{panel.title}\n", loc="left", color=theme.ink, fontweight="bold")
    axes.text(0, 1.02, panel.hint, color=theme.faint, transform=axes.transAxes)
    _bare(axes)
    axes.tick_params(colors=theme.faint)
    axes.get_yticklabels()[0].set(color=theme.own, fontweight="bold")


def _bare(axes: Axes) -> None:
    """Bars say their figures themselves."""
    axes.xaxis.set_major_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


@contextmanager
def _canvas(
    path: Path, width: float, height: float, *, is_transparent: bool = False
) -> Iterator[Canvas]:
    options: dict[str, Any] = {"metadata": {"Date": None}, "transparent": is_transparent}
    with mpl.rc_context(_STYLE):
        canvas = Canvas(figsize=(width, height), layout="constrained")
        yield canvas
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path, format="svg", **options)
