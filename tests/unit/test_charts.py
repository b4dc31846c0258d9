"""The benchmark's drawings: well-formed, true to the figures, legible on light and dark pages."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from benchmarks.chart import DARK, LIGHT, Panel, Plot, write_bars, write_curves, write_panels
from benchmarks.panels import write_picture

SVG = "{http://www.w3.org/2000/svg}"
PANEL = Panel("Again", "less is better", "s", [("ours", 2.0), ("slow", 200.0), ("lost", None)])


def texts(path: Path) -> list[str]:
    return [node.text or "" for node in ET.parse(path).iter(f"{SVG}text")]


def bar_lengths(path: Path) -> list[float]:
    """The widths of all bars, from top to bottom, in drawing units."""
    lengths = []
    for group in ET.parse(path).iter(f"{SVG}g"):
        if group.attrib.get("id") == "bar":
            outline = next(group.iter(f"{SVG}path")).attrib["d"]
            places = [float(x) for x, _y in re.findall(r"[ML] ([-0-9.]+) ([-0-9.]+)", outline)]
            lengths.append(max(places) - min(places))
    return lengths


def figure(name: str, value: float | None) -> dict[str, object]:
    return {"name": name, "figure": value}


def test_bars_are_as_long_as_their_ratios(tmp_path: Path) -> None:
    write_bars(tmp_path / "bars.svg", [("half <1>", 0.5), ("twice", 2.0)])

    half, twice = bar_lengths(tmp_path / "bars.svg")
    assert twice == pytest.approx(4 * half)
    assert {"half <1>", "0.50 ×", "2.00 ×"} <= set(texts(tmp_path / "bars.svg"))


@pytest.mark.parametrize("is_log", [True, False])
@pytest.mark.parametrize("has_log_y", [True, False])
def test_curves_name_their_lines_and_axes(tmp_path: Path, is_log: bool, has_log_y: bool) -> None:
    line = [(10.0**n, 1 + 9_999.0 * n / 9) for n in range(10)]
    plot = Plot("title", "tasks", "rate", {"one": line}, is_log, has_log_y)

    write_curves(tmp_path / "curve.svg", plot)

    assert {"title", "tasks", "rate", "one"} <= set(texts(tmp_path / "curve.svg"))


@pytest.mark.parametrize("is_log", [True, False])
def test_a_panel_says_each_figure_and_where_there_is_none(tmp_path: Path, is_log: bool) -> None:
    panel = Panel(PANEL.title, PANEL.hint, PANEL.unit, PANEL.bars, "never", is_log)

    write_panels(tmp_path / "panels.svg", [panel, panel], LIGHT)

    ours, slow, lost = bar_lengths(tmp_path / "panels.svg")[:3]
    assert slow > ours > lost == pytest.approx(0)
    assert {"ours", "2 s", "200 s", "never"} <= set(texts(tmp_path / "panels.svg"))


def test_light_and_dark_differ_only_in_their_colours(tmp_path: Path) -> None:
    write_panels(tmp_path / "light.svg", [PANEL, PANEL], LIGHT)
    write_panels(tmp_path / "dark.svg", [PANEL, PANEL], DARK)

    light, dark = (
        re.sub("#[0-9a-f]{6}", "#", (tmp_path / f"{name}.svg").read_text())
        for name in ("light", "dark")
    )
    assert light == dark
    assert (tmp_path / "light.svg").read_text() != (tmp_path / "dark.svg").read_text()


def test_the_picture_has_a_panel_for_what_was_measured(tmp_path: Path) -> None:
    rates = [
        figure("async no-op drain, two workers", 20_000.0),
        figure("procrastinate", 500.0),
        figure("celery, Redis", None),
    ]
    write_picture(tmp_path, {"async": {"content": rates}})

    found = texts(tmp_path / "peers-light.svg")
    assert {"Tasks per second", "horsies", "20k", "procrastinate"} <= set(found)
    assert {"celery", "Send to start"}.isdisjoint(found)
