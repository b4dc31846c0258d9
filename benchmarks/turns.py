"""How rows are measured: each run on a database of its own, ours and theirs in turn."""

import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from benchmarks import ours, peers
from benchmarks.ours import Drained
from benchmarks.report import Figure
from benchmarks.stage import fresh_database

T = TypeVar("T")
Work = Callable[[str], Any]
Say = Callable[[str], None]

RUNS = 5  # of each side of a ratio


class Turns:
    """Runs works on fresh databases of one server; a quick one does less of everything."""

    def __init__(self, server_url: str, say: Say, *, is_quick: bool) -> None:
        self.server_url = server_url
        self.say = say
        self.is_quick = is_quick
        self.has_peers = peers.prepare()

    def count(self, full: int) -> int:
        return full // 5 if self.is_quick else full

    def on(self, name: str, work: Callable[[str], T]) -> T:
        self.say(name)
        with fresh_database(self.server_url) as url:
            return work(url)

    def in_turn(self, **works: Work) -> dict[str, list[Any]]:
        """Each in turn, again and again: a noisy machine hurts all alike."""
        found: dict[str, list[Any]] = {name: [] for name in works}
        for _ in range(1 if self.is_quick else RUNS):
            for name, work in works.items():
                found[name].append(self.on(name.replace("_", " "), work))
        return found

    def drain(self, task: str, count: int, *options: str, **settings: Any) -> Work:
        return lambda url: ours.drain(url, task, self.count(count), *options, **settings)

    def peer(self, script: str, count: int, *arguments: str) -> Work:
        given = (str(self.count(count)), *arguments)
        return lambda url: peers.measure(script, url, *given) if self.has_peers else None


def middle(values: list[float]) -> float:
    return statistics.median(values)


def rate(runs: list[Drained] | Drained) -> float:
    return middle([one.rate for one in ([runs] if isinstance(runs, Drained) else runs)])


def spread(runs: list[Drained]) -> str:
    rates = sorted(one.rate for one in runs)
    return f"{rates[0]:,.0f} to {rates[-1]:,.0f} in {len(rates)}" if len(rates) > 1 else ""


def done_rate(speeds: list[peers.Speed | None]) -> float | None:
    found = [speed.done for speed in speeds if speed is not None]
    return middle(found) if found else None


def peer_figures(name: str, speeds: list[peers.Speed | None]) -> Iterator[Figure]:
    found = [speed for speed in speeds if speed is not None]
    if not found:
        yield Figure(name, math.nan, "", "missing", None, "cannot be had on this machine")
        return
    sent = middle([speed.sent for speed in found])
    detail = f"its sends: {sent:,.0f} per s"
    yield Figure(name, middle([speed.done for speed in found]), "tasks/s", "peer", None, detail)
