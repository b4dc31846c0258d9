"""The watchdog's thread: there whenever a statement has a limit."""

import subprocess
import sys

FORKING = """
import os, sys, warnings
import psycopg
from horsies.database.watchdog import Watchdog

warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads
watchdog = Watchdog()

def is_cut_off():
    connection = psycopg.connect(sys.argv[1], autocommit=True)
    try:
        with watchdog.limit(connection, 0.1):
            connection.execute("select pg_sleep(20)")
    except psycopg.OperationalError:
        return True
    return False

assert is_cut_off()
if os.fork():
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
os._exit(0 if is_cut_off() else 1)
"""


def test_a_forked_process_has_a_watchdog_of_its_own(database_url: str) -> None:
    done = subprocess.run([sys.executable, "-c", FORKING, database_url], check=False, timeout=60)

    assert done.returncode == 0
