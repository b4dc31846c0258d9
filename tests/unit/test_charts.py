"""The benchmark's drawings: well-formed, within their frame, and true to the figures."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from benchmarks.chart import Plot, write_bars, write_curves

SVG = "{http://www.w3.org/2000/svg}"


def texts(path: Path) -> list[str]:
    return [node.text or "" for node in ET.parse(path).iter(f"{SVG}text")]


def test_bars_are_as_long_as_their_ratios(tmp_path: Path) -> None:
    write_bars(tmp_path / "bars.svg", [("half <1>", 0.5), ("twice", 2.0)])

    bars = ET.parse(tmp_path / "bars.svg").findall(f"{SVG}rect")[1:]
    half, twice = (float(bar.attrib["width"]) for bar in bars)
    assert twice == 4 * half
    assert {"half <1>", "0.50 ×", "2.00 ×"} <= set(texts(tmp_path / "bars.svg"))


@pytest.mark.parametrize("is_log", [True, False])
@pytest.mark.parametrize("has_log_y", [True, False])
def test_curves_stay_within_their_frame(tmp_path: Path, is_log: bool, has_log_y: bool) -> None:
    line = [(10.0**n, 1 + 9_999.0 * n / 9) for n in range(10)]
    plot = Plot("title", "tasks", "rate", {"one": line}, is_log, has_log_y)

    write_curves(tmp_path / "curve.svg", plot)

    marks = ET.parse(tmp_path / "curve.svg").findall(f"{SVG}circle")
    places = [(float(mark.attrib["cx"]), float(mark.attrib["cy"])) for mark in marks]
    assert len(places) == len(line)
    assert places == sorted(places, key=lambda place: (place[0], -place[1]))
    assert all(0 < x < 720 and 0 < y < 360 for x, y in places)
