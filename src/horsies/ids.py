"""Time-ordered ids: UUID version 7 as text.

Within a process, ids increase even inside one millisecond.
"""

import os
import time

from horsies.locks import ForkSafeLock

_COUNTER_BITS = 42  # 12 bits of rand_a and the first 30 of rand_b count up within a millisecond
_lock = ForkSafeLock()
_last_ms = 0
_counter = 0


def new_id() -> str:
    """Return a new id."""
    return new_ids(1)[0]


def new_ids(count: int) -> list[str]:
    """Return `count` new ids in ascending order."""
    global _last_ms, _counter  # noqa: PLW0603 - one sequence per process is the point
    made: list[str] = []
    tails = memoryview(os.urandom(4 * count)).cast("I")
    with _lock:
        now_ms = time.time_ns() // 1_000_000
        for tail in tails:
            if now_ms > _last_ms:
                _last_ms = now_ms
                _counter = int.from_bytes(os.urandom(5)) & ((1 << (_COUNTER_BITS - 4)) - 1)
            else:
                _counter += 1
                if _counter >> _COUNTER_BITS:
                    _last_ms += 1
                    _counter = 0
            made.append(_format(_last_ms, _counter, tail))
    return made


def _format(milliseconds: int, counter: int, tail: int) -> str:
    high, low = (milliseconds >> 16) & 0xFFFF_FFFF, milliseconds & 0xFFFF
    middle, last = 0x8000 | counter >> 16 & 0x3FFF, (counter & 0xFFFF) << 32 | tail
    return f"{high:08x}-{low:04x}-7{counter >> 30:03x}-{middle:04x}-{last:012x}"
