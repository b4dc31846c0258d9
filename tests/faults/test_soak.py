"""Half an hour of work among kills: nothing lost, nothing doubled, memory and connections level."""

import itertools
import os
import statistics
import threading
import time

import psutil
import pytest

from support.cluster import DurableCluster
from support.eventually import eventually
from support.faults import Scene, scene

MINUTES = float(os.environ.get("HORSIES_SOAK_MINUTES", "0"))
KILL_EVERY_S = 10.0

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.timeout(int(MINUTES * 60) + 600),
    pytest.mark.skipif(not MINUTES, reason="takes half an hour: make soak"),
]


_SESSIONS = "select count(*) from pg_stat_activity where application_name like 'horsies%%'"


class Load:
    """Sends of all kinds, about forty a second, until stopped."""

    def __init__(self, play: Scene) -> None:
        self._play = play
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _send(self) -> None:
        kinds = itertools.cycle(["child", "coroutine", "thread", "flaky"])
        for number in itertools.count():
            if self._stopping.wait(0.02):
                return
            self._play.send(next(kinds), range(number, number + 1), (number % 7) / 100)


def test_soak(durable_cluster: DurableCluster) -> None:
    with scene(durable_cluster.url) as play:
        steady = play.start_worker("--processes", "2")
        victim = play.start_worker("--processes", "2")
        play.wait_ready(steady)
        memory_mb: list[float] = []
        connections: list[int] = []
        kills = 0
        until = time.monotonic() + MINUTES * 60
        with Load(play):
            while time.monotonic() < until:
                threading.Event().wait(KILL_EVERY_S)
                play.kill(victim)
                kills += 1
                victim = play.start_worker("--processes", "2")
                memory_mb.append(psutil.Process(steady.pid).memory_info().rss / 1_048_576)
                connections.append(play.scalar(_SESSIONS))
        play.wait_until_all_ended(within=120)
        play.assert_invariants()
        assert steady.poll() is None
        eventually(lambda: play.count("PENDING", "CLAIMED", "RUNNING") == 0, within=10)
        third = max(1, len(memory_mb) // 3)
        first_mb = statistics.mean(memory_mb[:third])
        last_mb = statistics.mean(memory_mb[-third:])
        print(
            f"soak: {len(play.numbers)} tasks, {kills} kills, memory {first_mb:.0f} -> "
            f"{last_mb:.0f} MB, connections {min(connections)} to {max(connections)}"
        )
        assert last_mb < 1.2 * first_mb
        assert max(connections) <= 30, "two workers, one of them dying, and the sender"
