"""The primary dies, or hands over: everything goes on at the other server, and nothing is lost."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from horsies.result import Err
from support.eventually import eventually
from support.faults import Scene, scene
from support.replication import ReplicatedCluster

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(240)]

PATIENT = {"running_stale_threshold_ms": 60_000, "claimed_stale_threshold_ms": 60_000}


class Senders:
    """Threads that send without a pause and remember what was acknowledged."""

    def __init__(self, play: Scene) -> None:
        self._play = play
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=[n]) for n in range(3)]
        self.sent: dict[str, int] = {}
        self.refused = 0

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=60)

    def _send(self, first: int) -> None:
        number = first
        while not self._stopping.is_set():
            result = self._play.module.coroutine.send(number, 0.01)
            if isinstance(result, Err):
                self.refused += 1
                assert result.err_value.retryable, result.err_value.message
                self._stopping.wait(0.05)
                continue
            self.sent[result.ok_value.task_id] = number
            number += 3
            self._stopping.wait(0.005)


@contextmanager
def under_load(url: str) -> Iterator[tuple[Scene, Senders]]:
    with scene(url, recovery=PATIENT) as play:
        for _ in range(2):
            play.wait_ready(play.start_worker("--processes", "1"))
        senders = Senders(play)
        senders.start()
        try:
            eventually(lambda: len(senders.sent) > 100, within=30)
            yield play, senders
        finally:
            senders.stop()


def _assert_nothing_lost(play: Scene, senders: Senders) -> None:
    stored = {row[0] for row in play.rows("select id from horsies_tasks")}
    assert set(senders.sent) <= stored, "an acknowledged send is stored"
    eventually(
        lambda: play.count("PENDING", "CLAIMED", "RUNNING") == 0,
        within=60,
    )
    # A send whose answer was lost may have been stored all the same: it is a task like any other.
    play.find_sent()
    play.assert_invariants()
    assert all(worker.poll() is None for worker in play.workers)


def test_killed_primary_loses_no_acknowledged_send(replicated_cluster: ReplicatedCluster) -> None:
    with under_load(replicated_cluster.url()) as (play, senders):
        replicated_cluster.kill_primary()
        replicated_cluster.promote()
        sent = len(senders.sent)

        eventually(lambda: len(senders.sent) > sent + 100, within=30)
        senders.stop()

        _assert_nothing_lost(play, senders)


def test_switchover_loses_nothing(replicated_cluster: ReplicatedCluster) -> None:
    with under_load(replicated_cluster.url()) as (play, senders):
        replicated_cluster.switchover()
        sent = len(senders.sent)

        eventually(lambda: len(senders.sent) > sent + 100, within=30)
        senders.stop()

        _assert_nothing_lost(play, senders)


def test_sessions_leave_a_primary_that_has_turned_read_only(
    replicated_cluster: ReplicatedCluster,
) -> None:
    """The old primary stays up and refuses writes; its standby has been promoted."""
    with under_load(replicated_cluster.url("read-write")) as (play, senders):
        replicated_cluster.turn_read_only()
        replicated_cluster.promote()
        sent = len(senders.sent)

        eventually(lambda: len(senders.sent) > sent + 100, within=40)
        senders.stop()

        _assert_nothing_lost(play, senders)
