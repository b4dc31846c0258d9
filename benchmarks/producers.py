"""Eight processes that send one by one, ours beside raw INSERT + commit.

`python -m benchmarks.producers URL raw|send COUNT` is one of them.
"""

import os
import subprocess
import sys
import time

from benchmarks import ours, raw
from benchmarks.stage import ROOT, connect

CLIENTS = 8


def rate(url: str, kind: str, count: int, clients: int = CLIENTS) -> float:
    """Rows per second of all together, `count` by each; they begin at once."""
    if kind == "send":
        with ours.sending(url):
            pass  # the schema is there
    else:
        with connect(url) as connection:
            connection.execute(raw.TABLE)
    command = [sys.executable, "-m", "benchmarks.producers", url, kind, str(count)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    running = [
        subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for _ in range(clients)
    ]  # fmt: skip
    for one in running:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    started = time.perf_counter()
    for one in running:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    ended = [one.wait(300) for one in running]
    elapsed = time.perf_counter() - started
    if any(ended):
        raise RuntimeError(f"producers ended with {ended}")
    return clients * count / elapsed


def _insert(url: str, count: int) -> None:
    statement = "insert into raw_tasks (id, payload) values (%s, %s)"
    with connect(url) as connection:
        connection.execute(statement, [f"{os.getpid():018d}{count:018d}", "[1]"])
        _wait_for_the_others()
        for number in range(count):
            connection.execute(statement, [f"{os.getpid():018d}{number:018d}", "[1]"])


def _send(url: str, count: int) -> None:
    module = ours.load_app(url)
    module.noop.send(0).unwrap()
    _wait_for_the_others()
    for number in range(count):
        module.noop.send(number).unwrap()
    sys.stdout.flush()
    os._exit(0)  # closing is not measured


def _wait_for_the_others() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    (_send if sys.argv[2] == "send" else _insert)(sys.argv[1], int(sys.argv[3]))
