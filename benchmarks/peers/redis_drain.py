"""Queues on Redis: their drain of waiting no-op tasks, seen as their list in Redis grows short.

usage: redis_drain.py SOCKET COUNT huey|dramatiq|celery
The same file is the module their workers import.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import redis

SOCKET = os.environ.get("BENCH_REDIS_SOCKET") or sys.argv[1]
KIND = os.environ.get("BENCH_PEER") or sys.argv[3]
BIN = Path(sys.executable).parent

if KIND == "huey":
    from huey import RedisHuey

    # Its recommendation for processes; results of no-op tasks are not stored: the faster way.
    huey = RedisHuey("bench", url=f"unix://{SOCKET}", results=False)

    @huey.task()
    def noop(number: int) -> None: ...

    LIST = "huey.redis.bench"
    COMMAND = ["huey_consumer", "redis_drain.huey", "-w", "4", "-k", "process"]
elif KIND == "dramatiq":
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker

    dramatiq.set_broker(RedisBroker(url=f"unix://{SOCKET}"))

    @dramatiq.actor
    def noop(number: int) -> None: ...

    LIST = "dramatiq:default"
    COMMAND = ["dramatiq", "redis_drain", "-p", "2", "-t", "8"]
else:
    from celery import Celery

    app = Celery("redis_drain", broker=f"redis+socket://{SOCKET}")
    app.conf.task_ignore_result = True
    app.conf.worker_prefetch_multiplier = 64

    @app.task(name="noop")
    def noop(number: int) -> None: ...

    LIST = "celery"
    COMMAND = ["celery", "-A", "redis_drain", "worker", "-c", "4", "--loglevel", "ERROR",
               "--without-gossip", "--without-mingle", "--without-heartbeat"]  # fmt: skip


def send(number: int) -> None:
    if KIND == "huey":
        noop(number)
    elif KIND == "dramatiq":
        noop.send(number)
    else:
        noop.delay(number)


def main(count: int) -> None:
    client = redis.Redis(unix_socket_path=SOCKET)
    client.flushall()
    started = time.perf_counter()
    for number in range(count):
        send(number)
    sent = count / (time.perf_counter() - started)
    waiting = client.llen(LIST)
    assert waiting == count, f"{waiting} of {count} wait in {client.keys()}"
    environment = {**os.environ, "BENCH_REDIS_SOCKET": SOCKET, "BENCH_PEER": KIND}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    command = [str(BIN / COMMAND[0]), *COMMAND[1:]]
    worker = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while (left := client.llen(LIST)) == count:
            time.sleep(0.002)
        first, begun = time.perf_counter(), left
        while client.llen(LIST):
            time.sleep(0.005)
            assert worker.poll() is None, "its worker has ended"
        print(sent, begun / (time.perf_counter() - first))
    finally:
        os.killpg(worker.pid, signal.SIGKILL)  # it has been measured: not its way to stop
        worker.wait()


if __name__ == "__main__":
    import redis_drain  # tasks are known by the module's name, here and in the worker

    redis_drain.main(int(sys.argv[2]))
