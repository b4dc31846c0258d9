"""Numbers for Prometheus: counted cheaply here, written by its library only when it asks.

The library's own counters cost several microseconds each; a worker has some ten per task.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from horsies.codes import ErrorCode
from horsies.errors import ConfigurationError

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500)
PLAIN_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """Counts per bucket; an observation costs one bisection."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def observe_all(self, values: Sequence[float]) -> None:
        """Many at once, at half the price; clocks may differ, so below zero counts as zero."""
        counts, bounds, total = self.counts, self.bounds, 0.0
        for value in values:
            if value > 0.0:
                counts[bisect_left(bounds, value)] += 1
                total += value
            else:
                counts[0] += 1
        self.total += total


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with its samples: label values in the order of the label names."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    samples: Mapping[tuple[str, ...], float | Histogram] = field(default_factory=dict[Any, Any])


def gauge(name: str, text: str, value: float) -> Family:
    """A metric without labels."""
    return Family(name, "gauge", text, (), {(): value})


Read = Callable[[], Iterable[Family]]


class Exposition:
    """Writes families in the format that Prometheus scrapes."""

    def __init__(self, read: Read, *, has_process: bool = False) -> None:
        try:
            from prometheus_client import CollectorRegistry, ProcessCollector
            from prometheus_client.exposition import choose_encoder
        except ImportError as error:
            raise ConfigurationError(
                "metrics need the library prometheus-client",
                ErrorCode.CLI_INVALID_ARGS,
                help_text="pip install 'horsies[prometheus]'",
            ) from error
        self._choose_encoder = choose_encoder
        self._registry = CollectorRegistry()
        self._registry.register(_Collector(read))
        if has_process:
            ProcessCollector(registry=self._registry)

    def text(self, accept: str = "") -> tuple[str, bytes]:
        """The content type and the body for this Accept header."""
        encode, content_type = self._choose_encoder(accept)
        return content_type, encode(self._registry)


class _Collector:
    def __init__(self, read: Read) -> None:
        self._read = read

    def describe(self) -> Iterable["Metric"]:
        """Say nothing beforehand: what there is shows at the first scrape."""
        return ()

    def collect(self) -> Iterable["Metric"]:
        return [_metric(family) for family in self._read()]


def _metric(family: Family) -> "Metric":
    from prometheus_client.metrics_core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    if family.kind == "histogram":
        metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for values, sample in sorted(family.samples.items()):
            assert isinstance(sample, Histogram)
            metric.add_metric(values, _buckets(sample), sample.total)
        return metric
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    plain = kind(family.name, family.help, labels=family.labels)
    for values, sample in sorted(family.samples.items()):
        assert not isinstance(sample, Histogram)
        plain.add_metric(values, sample)
    return plain


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Counts up to each bound, as the format has them; the last is the number of all."""
    counts = list(histogram.counts)  # one step for the interpreter: the worker goes on counting
    bounds = [*(str(float(bound)) for bound in histogram.bounds), "+Inf"]
    reached, buckets = 0, list[tuple[str, float]]()
    for bound, count in zip(bounds, counts, strict=True):
        reached += count
        buckets.append((bound, reached))
    return buckets
