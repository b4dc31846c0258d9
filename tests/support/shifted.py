"""Runs a program of ours whose wall clock is wrong, and may be set while it runs.

`python shifted.py FILE PROGRAM ARGUMENT...`: the file says by how many seconds it is off now.
"""

import runpy
import sys
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from horsies import clock

SHIFT_FILE = Path(sys.argv[1])
true_time, true_time_ns = time.time, time.time_ns


def off_by_s() -> int:
    while not (text := SHIFT_FILE.read_text()):
        pass  # just being written anew
    return int(text)


class ShiftedDatetime(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return datetime.now(tz) + timedelta(seconds=off_by_s())


if __name__ == "__main__":
    time.time = lambda: true_time() + off_by_s()
    time.time_ns = lambda: true_time_ns() + off_by_s() * 10**9
    clock.datetime = ShiftedDatetime  # type: ignore[misc]
    program, sys.argv = sys.argv[2], sys.argv[2:]
    run = runpy.run_path if program.endswith(".py") else runpy.run_module
    run(program, run_name="__main__")
