"""Numbers for Prometheus: buckets, bounded labels, a missing library."""

import sys

import pytest

from horsies.config import AppConfig, PostgresConfig
from horsies.errors import ConfigurationError
from horsies.observability.metrics import Exposition, Family, Histogram
from horsies.worker.completer import Recorded
from horsies.worker.held_task import Completion, HeldTask
from horsies.worker.identity import WorkerIdentity
from horsies.worker.metrics import WorkerMetrics
from horsies.worker.settings import WorkerConfig, WorkerContext


def text_of(*families: Family) -> list[str]:
    _, text = Exposition(lambda: families).text()
    return [line for line in text.decode().splitlines() if not line.startswith("#")]


def test_a_histogram_counts_up_to_each_bound() -> None:
    histogram = Histogram((1, 10))
    for value in (0.5, 1, 2, 100):
        histogram.observe(value)

    assert text_of(Family("sizes", "histogram", "Sizes.", ("kind",), {("a",): histogram})) == [
        'sizes_bucket{kind="a",le="1.0"} 2.0',
        'sizes_bucket{kind="a",le="10.0"} 3.0',
        'sizes_bucket{kind="a",le="+Inf"} 4.0',
        'sizes_count{kind="a"} 4.0',
        'sizes_sum{kind="a"} 103.5',
    ]


def held(name: str, queue: str, enqueued_at: str = "2026-11-17 12:00:00.000000+00") -> HeldTask:
    claim = "2026-11-17 12:00:02.000000+00"
    return HeldTask("t", queue, 1, 1, name, None, None, 1, claim, enqueued_at, None, False, 1)


def test_labels_do_not_grow_with_what_is_sent() -> None:
    config = AppConfig(broker=PostgresConfig(database_url="postgresql://nowhere/none"))
    context = WorkerContext(config, WorkerConfig(), WorkerIdentity("w", "host-a", 1))
    metrics = WorkerMetrics(context, ["known"])
    tasks = [held("known", "default"), *(held(f"name-{n}", f"queue-{n}") for n in range(50))]

    ahead = held("known", "default", "2026-11-17 12:00:09.000000+00")  # by another clock
    metrics.claimed([*tasks, held("known", "default", "-infinity"), ahead])
    metrics.recorded(
        [Recorded(Completion(task, "", duration_s=0.5), "completed") for task in tasks]
    )

    lines = text_of(*metrics.counted())
    assert [line for line in lines if line.startswith("horsies_attempts_total")] == [
        'horsies_attempts_total{outcome="completed",queue="(unknown)",task="(unknown)"} 50.0',
        'horsies_attempts_total{outcome="completed",queue="default",task="known"} 1.0',
    ]
    assert [line for line in lines if line.startswith("horsies_wait_seconds_sum")] == [
        'horsies_wait_seconds_sum{queue="(unknown)",task="(unknown)"} 100.0',
        'horsies_wait_seconds_sum{queue="default",task="known"} 2.0',
    ]
    assert 'horsies_wait_seconds_count{queue="default",task="known"} 2.0' in lines


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(ConfigurationError, match="metrics need the library") as refused:
        Exposition(list)

    assert "pip install 'horsies[prometheus]'" in str(refused.value)
