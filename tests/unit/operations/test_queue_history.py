"""Percentiles of histograms."""

import math
import random

import pytest

from horsies.operations.queue_history import merged, percentiles


def histogram(values: list[float]) -> list[int]:
    """As `horsies_histogram` makes it of seconds."""
    buckets = [max(math.ceil(8 * math.log10(value * 1000)), 0) for value in values]
    return [buckets.count(n) for n in range(max(buckets) + 1)]


@pytest.mark.parametrize("scale", [0.002, 0.1, 3.0, 400.0])
def test_percentiles_are_within_a_sixth(scale: float) -> None:
    rng = random.Random(7)
    values = sorted(rng.lognormvariate(0, 1) * scale for _ in range(5_000))

    found = percentiles(histogram(values))

    exact = [values[int(share * len(values))] for share in (0.5, 0.95, 0.99)]
    assert [abs(a / b - 1) < 1 / 6 for a, b in zip(found, exact, strict=True)] == [True] * 3


def test_nothing_has_no_percentiles() -> None:
    assert percentiles([]) == percentiles([0, 0]) == []


def test_histograms_of_several_lengths_are_merged() -> None:
    assert merged([[1, 2], [], [0, 1, 5]]) == [1, 3, 5]
