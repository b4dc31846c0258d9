"""100,000 tasks while a worker is killed every two seconds and the server goes down five times."""

import os
import random
import threading
import time

import pytest

from support.cluster import DurableCluster
from support.faults import ENDED, scene

COUNT = int(os.environ.get("HORSIES_FAULT_TASKS", "0"))
pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.timeout(3_600),
    pytest.mark.skipif(not COUNT, reason="takes minutes: make faults-long"),
]
WORKERS = 3
RESTARTS = 5


def test_hundred_thousand_tasks_survive(
    durable_cluster: DurableCluster, seeded: random.Random, capsys: pytest.CaptureFixture[str]
) -> None:
    with scene(durable_cluster.url) as play:
        play.send_many("coroutine", range(COUNT // 2))
        play.send_many("child", range(COUNT // 2, COUNT * 9 // 10))
        play.send_many("thread", range(COUNT * 9 // 10, COUNT))
        started_at, restarts, kills = time.monotonic(), 0, 0
        workers = [play.start_worker("--processes", "1") for _ in range(WORKERS)]

        while (ended := play.count(*ENDED)) < COUNT or restarts < RESTARTS:
            threading.Event().wait(2.0)
            victim = seeded.randrange(WORKERS)
            play.kill(workers[victim])
            workers[victim] = play.start_worker("--processes", "1")
            kills += 1
            if restarts < RESTARTS and ended >= restarts * COUNT / (RESTARTS + 1):
                (durable_cluster.stop, durable_cluster.kill9)[restarts % 2]()
                durable_cluster.start()
                restarts += 1

        seconds = time.monotonic() - started_at
        play.assert_invariants()
        crashes = play.scalar(
            "select count(*) from horsies_task_attempts where error_code = 'WORKER_CRASHED'"
        )
        twice = sum(runs > 1 for runs in play.begun().values())
        with capsys.disabled():
            print(
                f"\n{COUNT} tasks in {seconds:.0f} s: {kills} workers killed, {restarts} restarts "
                f"of the server, {play.begun().total()} runs, {crashes} recorded crashes, "
                f"{twice} tasks ran more than once"
            )
        assert play.count("COMPLETED") == COUNT
        assert play.begun().total() == COUNT + crashes
