"""Charts are well-formed SVG that says what it shows."""

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest

from horsies.operations.words import duration
from horsies.web.charts import Chart, Series, bar, draw, spark

START = datetime(2030, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def chart(*values: float | None, name: str = "completed", is_duration: bool = False) -> Chart:
    starts = [START + MINUTE * number for number in range(len(values))]
    series = [Series(name, "good", values, is_filled=True)]

    def form(value: float) -> str:
        return duration(timedelta(seconds=value)) if is_duration else f"{value:g}"

    return Chart("Throughput", starts, MINUTE, series, form, is_duration)


def svg(drawn: str) -> ET.Element:
    return ET.fromstring(f"<div>{drawn}</div>")


def labels(drawn: str) -> list[str]:
    return re.findall(r'text-anchor="end" dy="[^"]+">([^<]+)<', drawn)


@pytest.mark.parametrize("values", [(), (1.0,), (1.0, None, 3.0), (None, None), (0.0, 0.0)])
def test_any_values_give_a_well_formed_chart(values: tuple[float | None, ...]) -> None:
    root = svg(draw(chart(*values)))

    assert root[0].tag == "svg"
    assert len(root.findall(".//path[@class='hit']")) == len(values)


def test_a_gap_is_not_drawn_over() -> None:
    drawn = draw(chart(1, 2, None, 4, 5))

    assert len(re.findall(r'class="line', drawn)) == 2


def test_a_lonely_value_is_a_point() -> None:
    assert '<circle class="point' in draw(chart(None, 5, None))


@pytest.mark.parametrize(
    ("highest", "top"), [(0, "1"), (0.7, "0.8"), (3, "4"), (37, "40"), (641, "800"), (1000, "1000")]
)
def test_numbers_have_round_scales(highest: float, top: str) -> None:
    assert labels(draw(chart(highest)))[-1] == top


@pytest.mark.parametrize(
    ("highest", "top"),
    [(0.003, "4 ms"), (1.5, "2.0 s"), (70, "2 min"), (5_000, "2 h"), (100_000, "2 d")],
)
def test_lengths_of_time_have_round_scales(highest: float, top: str) -> None:
    assert labels(draw(chart(highest, is_duration=True)))[-1] == top


def test_what_it_shows_is_said_in_words() -> None:
    drawn = draw(chart(1, 7, None))

    assert 'aria-label="Throughput, latest: completed 7"' in drawn
    assert f"{{{START.isoformat()}}}\ncompleted: 1" in drawn


def test_names_cannot_break_out() -> None:
    drawn = draw(chart(1, name='"><script>'))

    assert "<script" not in drawn
    assert svg(drawn) is not None


@pytest.mark.parametrize(("share", "width"), [(-1, "0.0"), (0.5, "50.0"), (7, "100.0")])
def test_a_bar_stays_within_its_frame(share: float, width: str) -> None:
    assert f'width="{width}"' in bar(share, "busy", "half")


def test_a_spark_leaves_out_what_is_unknown() -> None:
    points = re.findall(r'points="([^"]*)"', spark([0, None, 2], "busy", "load"))[0]

    assert points == "0.0,27.0 100.0,2.0"
