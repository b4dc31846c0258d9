"""A process that forks while another of its threads is busy in the queue."""

import subprocess
import sys

from support.database import Database
from support.eventually import eventually

FORKING = """
import os, sys, threading, warnings
from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult

warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads
app = Horsies(AppConfig(broker=PostgresConfig(database_url=sys.argv[1])))

@app.task("noop")
def noop() -> TaskResult[None, TaskError]:
    return TaskResult(ok=None)

threading.Thread(target=lambda: noop.send().unwrap()).start()
sys.stdin.readline()
if os.fork() == 0:
    noop.send().unwrap()
    os._exit(0)
print("forked", flush=True)
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
HELD_UP = (
    "select 1 from pg_locks where relation = 'horsies_schema_version'::regclass and not granted"
)


def test_a_forked_process_can_send_whatever_other_threads_held(
    database_url: str, db: Database
) -> None:
    """Here the lock of the look at the schema, which a locked table holds up."""
    db.connection.execute("begin")
    db.connection.execute("lock table horsies_schema_version")
    with subprocess.Popen(
        [sys.executable, "-c", FORKING, database_url],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdin is not None
        assert program.stdout is not None
        eventually(lambda: db.execute(HELD_UP))
        program.stdin.write("\n")
        program.stdin.flush()
        program.stdout.readline()
        db.connection.execute("commit")
        try:
            assert program.wait(20) == 0
        finally:
            program.kill()
