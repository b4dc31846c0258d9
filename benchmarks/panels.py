"""The picture for visitors: ours beside each peer, from what a run has stored."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.chart import DARK, LIGHT, Panel, write_panels

LATENCY, RECOVERY = "send → start", "recovery after kill -9"
RECOVERY_LIMIT_S = 400.0  # oban looks each minute for jobs that began five minutes ago
# Ours first; each peer's figure by its name in the table.
_RATES = {
    "horsies": "async no-op drain, two workers",
    "pgqueuer": "pgqueuer, 2 processes, batch 500",
    "oban": "oban",
    "procrastinate": "procrastinate",
    "dramatiq": "dramatiq, Redis",
    "huey": "huey, Redis, 4 processes",
    "celery": "celery, Redis",
}


def write_picture(folder: Path, known: Mapping[str, Any]) -> None:
    """Draw the panels of which figures are known, once for light and once for dark pages."""
    figures = {
        figure["name"]: figure["figure"] for part in known.values() for figure in part["content"]
    }
    if panels := [panel for panel in _panels(figures) if len(panel.bars) > 1]:
        write_panels(folder / "peers-light.svg", panels, LIGHT)
        write_panels(folder / "peers-dark.svg", panels, DARK)


def _panels(figures: Mapping[str, float | None]) -> tuple[Panel, ...]:
    rates = [(name, figures[row]) for name, row in _RATES.items() if figures.get(row)]
    return (
        Panel("Tasks per second", "more is better", "", rates),
        # A peer without a figure here could not be had.
        Panel(
            "Send to start",
            "less is better",
            "ms",
            [bar for bar in _rows(figures, LATENCY) if bar[1] is not None],
        ),
        # A peer without a figure here has not run the task again.
        Panel(
            "Again after kill -9",
            "less is better (logarithmic)",
            "s",
            _rows(figures, RECOVERY),
            word=f"not in {RECOVERY_LIMIT_S:.0f} s",
            is_log=True,
        ),
    )


def _rows(figures: Mapping[str, float | None], what: str) -> list[tuple[str, float | None]]:
    return [(name, figures[f"{name}, {what}"]) for name in _RATES if f"{name}, {what}" in figures]
