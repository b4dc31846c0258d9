"""What it costs to be watched, and to look: metrics and traces, lists of a large table."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

from benchmarks import ours, watching
from benchmarks.ours import WIDE, Drained, environ, sending
from benchmarks.report import Figure, at_least, at_most
from benchmarks.stage import connect
from benchmarks.turns import Turns, middle, rate, spread
from horsies import Horsies, TaskFilter
from horsies.clock import utc_now

_METRICS = ("--metrics-port", "0")
_LIST_MS = 100
_DAYS = timedelta(days=2)  # the rows that are filled in ended a day ago
_LONG_AGO = utc_now() - _DAYS
_CARRY = """
update horsies_tasks set task_options = left(coalesce(task_options, '{"retry_policy":null}'), -1)
    || ',"traceparent":"00-' || md5(id) || '-' || left(md5(task_name || id), 16) || '-01"}'
"""
_MIX = """
update horsies_tasks set task_name = 'mix' || (abs(hashtext(id)) % 20),
    tags = case when abs(hashtext(id)) % 100 = 0 then array['vip'] end
where abs(hashtext(id)) % 10 = 0
"""
_FAIL = """
update horsies_tasks set status = 'FAILED', error_code = 'BROKEN', failed_at = completed_at,
    completed_at = null
where status = 'COMPLETED' and abs(hashtext(id)) % 1000 = 0
"""


def observability(turns: Turns) -> Iterator[Figure]:
    """The same rows, each sent under a span, by workers that are watched more and more."""
    count = 60_000
    number = turns.count(count)
    found: dict[str, list[Drained]] = turns.in_turn(
        unwatched=lambda url: _drain(url, number, *WIDE),
        metrics=lambda url: _drain(url, number, *WIDE, *_METRICS),
        watched=lambda url: _drain(url, number, *WIDE, *_METRICS, traced="as by default"),
        traced=lambda url: _drain(url, number, *WIDE, *_METRICS, traced="every"),
    )
    unwatched = rate(found["unwatched"])
    yield Figure("unwatched drain", unwatched, "tasks/s", "", None, _detail(found["unwatched"]))
    for name, what in (("metrics", "metrics on"), ("watched", "metrics and traces")):
        # Of each turn by itself: from turn to turn this machine's speed varies by a third.
        shares = [a.rate / b.rate for a, b in zip(found[name], found["unwatched"], strict=True)]
        detail = f"{rate(found[name]):,.0f} tasks/s, {_detail(found[name])}"
        yield at_least(f"{what}, share of unwatched", 100 * middle(shares), "%", 95, detail)
    runs = found["traced"]
    yield Figure("metrics and traces without limit", rate(runs), "tasks/s", "", None, _detail(runs))
    yield from _added(middle([_cpu_us(one) for one in found["unwatched"]]))


def _added(whole_us: float) -> Iterator[Figure]:
    """What watching adds to the CPU time of a task, beside what server and worker spend on it."""
    counted, passed = watching.metrics_us(), watching.span_us("-01", max_per_second=1)
    recorded = watching.span_us("-01", max_per_second=None)
    detail = f"of {whole_us:.0f} µs: {counted:.1f} metrics, {passed:.1f} a span above the limit"
    yield at_most("CPU added: metrics and traces", counted + passed, "µs", 0.05 * whole_us, detail)
    yield Figure("CPU added by a recorded span", recorded, "µs", "", None, "the SDK's own work")


def _cpu_us(one: Drained) -> float:
    return one.costs["worker_us"] + one.costs["server_us"]


def _drain(url: str, count: int, *options: str, traced: str | None = None) -> Drained:
    """A drain of coroutines; each was sent by itself under a span that its sender records."""
    environment = {"HORSIES_BENCH_COROUTINES_ONLY": "1"}
    if traced is not None:
        environment["HORSIES_BENCH_TRACED"] = traced
    with environ(environment), sending(url), connect(url) as connection:
        ours.fill(url, "noop", count)
        connection.execute(_CARRY.encode())
        # That update has left a dead row for each task, and full index pages.
        connection.execute("vacuum full horsies_tasks")
        ours.settle(connection)
        return ours.work_off(url, count, *options)


def _detail(runs: list[Drained]) -> str:
    cpu = middle([one.costs["worker_us"] for one in runs])
    return ", ".join(filter(None, [spread(runs), f"{cpu:.0f} µs of the worker's CPU per task"]))


def lists(turns: Turns) -> Iterator[Figure]:
    """Each list, count and filter of operators beside a million ended and 100,000 waiting rows."""
    history, backlog = turns.count(1_000_000), turns.count(100_000)

    def measured(url: str) -> dict[str, float]:
        ours.bulk_fill(url, "COMPLETED", 1, history)
        ours.bulk_fill(url, "PENDING", history + 1, backlog)
        with connect(url) as connection:
            connection.execute(_MIX.encode())
            connection.execute(_FAIL.encode())
            ours.settle(connection)
        with sending(url) as module:
            return {name: _best_ms(look) for name, look in _looks(module.app).items()}

    found = turns.on(f"lists beside {history:,} ended rows", measured)
    for name, milliseconds in found.items():
        yield at_most(name, milliseconds, "ms", _LIST_MS)


def _best_ms(look: Callable[[], object]) -> float:
    """The middle of five, after one to warm up."""
    look()
    times: list[float] = []
    for _ in range(5):
        started = time.perf_counter()
        look()
        times.append((time.perf_counter() - started) * 1000)
    return middle(times)


def _looks(app: Horsies) -> dict[str, Callable[[], object]]:
    see = app.operations
    filters = {
        "all": TaskFilter(),
        "failed": TaskFilter(statuses=("FAILED",)),
        "waiting": TaskFilter(statuses=("PENDING",)),
        "one of twenty names": TaskFilter(task_name="mix7"),
        "names by pattern": TaskFilter(task_name="mix1*"),
        "no such name": TaskFilter(task_name="never"),
        "one queue": TaskFilter(queue_name="default"),
        "one error code": TaskFilter(error_code="BROKEN"),
        "a tag": TaskFilter(tag="vip"),
        "a time": TaskFilter(ended_since=_LONG_AGO),
        "a worker": TaskFilter(worker="history"),
        "an argument": TaskFilter(arguments=(("args.0", "1"),)),
    }
    looks: dict[str, Callable[[], object]] = {}
    for name, wanted in filters.items():
        looks[f"list: {name}"] = lambda wanted=wanted: see.tasks(wanted).unwrap()
        looks[f"count: {name}"] = lambda wanted=wanted: see.count(wanted).unwrap()
    return {
        **looks,
        "status": lambda: see.status(window=_DAYS).unwrap(),
        "queues": lambda: see.queues(window=_DAYS).unwrap(),
        "rates by name": lambda: see.task_stats(window=_DAYS).unwrap(),
        "workers": lambda: see.workers().unwrap(),
    }
