"""What was measured, as a table, as JSON and as a chart."""

import json
import math
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.chart import write_bars
from benchmarks.panels import write_picture
from benchmarks.stage import ROOT

RESULTS = ROOT / "benchmarks" / "results"
# What the guide shows, kept with the code: a run of some groups leaves the others as they were.
FIGURES = ROOT / "benchmarks" / "figures.json"
IMAGES = ROOT / "docs" / "images"
PAGE = ROOT / "docs" / "concepts" / "performance.md"
BEGIN, END = "<!-- written by make bench -->", "<!-- end -->"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured row; the ratio is figure to target, 1.0 or more is reached."""

    name: str
    figure: float
    unit: str
    target: str = ""
    ratio: float | None = None
    detail: str = ""


def at_least(name: str, figure: float, unit: str, target: float, detail: str = "") -> Figure:
    return Figure(name, figure, unit, f"≥ {target:,.0f}", figure / target, detail)


def at_most(name: str, figure: float, unit: str, target: float, detail: str = "") -> Figure:
    return Figure(name, figure, unit, f"≤ {target:,.1f}", target / max(figure, 0.001), detail)


def show(console: Console, figures: Sequence[Figure], *, has_heading: bool = True) -> None:
    table = Table(show_header=has_heading, box=None, padding=(0, 1))
    for heading, width in (("measured", 46), ("figure", 10), ("unit", 8), ("target", 9),
                           ("ratio", 6), ("", 60)):  # fmt: skip
        is_number = heading in ("figure", "ratio")
        table.add_column(heading, justify="right" if is_number else "left", width=width)
    for figure in figures:
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        colour = "" if figure.ratio is None else "green" if figure.ratio >= 1 else "red"
        shown = f"[{colour}]{ratio}[/{colour}]" if colour else ratio
        table.add_row(
            figure.name, written(figure.figure), figure.unit, figure.target, shown, figure.detail
        )
    console.print(table)


def written(value: float | None) -> str:
    """With as many places as the value is worth; what could not be measured is a dash."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.{0 if value >= 100 else 2 if value >= 0.1 else 4}f}"


def _origin() -> dict[str, str]:
    ask = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
    }


def store(path: Path, parts: dict[str, Any]) -> dict[str, Any]:
    """Put parts into a file of JSON beside those of earlier runs; all that is there now."""
    path.parent.mkdir(exist_ok=True)
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    known |= {part: {**_origin(), "content": content} for part, content in parts.items()}
    path.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
    return known


def store_figures(groups: dict[str, list[Figure]], *, into: Path | None) -> None:
    """Write JSON and the charts; those of a full run also go `into` the docs."""
    known = store(
        FIGURES if into else RESULTS / "quick.json",
        {group: list(map(_fields, found)) for group, found in groups.items()},
    )
    bars = [
        (figure["name"], figure["ratio"])
        for part in known.values()
        for figure in part["content"]
        if figure["ratio"] is not None
    ]
    folder = into or RESULTS
    if bars:
        write_bars(folder / "targets.svg", bars)
    write_picture(folder, known)
    if into:
        write_table(known)


def _fields(figure: Figure) -> dict[str, Any]:
    """JSON has no word for "not a number"."""
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in asdict(figure).items()
    }


def write_table(known: dict[str, Any]) -> None:
    """Put the figures of all groups where the guide's page has room for them."""
    lines = ["| measured | figure | target | ratio | |", "|---|---:|---|---:|---|"]
    for group, part in known.items():
        day = datetime.fromisoformat(part["at"]).strftime("%-d %B %Y")
        lines.append(f"| *{group}* ({day}, {part['commit']}, Python {part['python']}) | | | | |")
        for figure in part["content"]:
            shown = f"{written(figure['figure'])} {figure['unit']}".strip()
            ratio = "" if figure["ratio"] is None else f"{figure['ratio']:.2f}"
            cells = (figure["name"], shown, figure["target"], ratio, figure["detail"])
            lines.append(f"| {' | '.join(cells)} |")
    head, rest = PAGE.read_text().split(BEGIN)
    tail = rest.split(END)[1]
    PAGE.write_text(f"{head}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{tail}")
