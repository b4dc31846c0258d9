"""The only source of time: a wall clock for records, a monotonic clock for waits, and jitter."""

import random
import time
from datetime import UTC, datetime

_random = random.SystemRandom()


def utc_now() -> datetime:
    """Return the wall clock of this process; the clock of the database decides everything else."""
    return datetime.now(UTC)


def monotonic() -> float:
    return time.monotonic()


def since_boot() -> float:
    """Return seconds since boot: the clock of process start times, which nobody can set."""
    if hasattr(time, "CLOCK_BOOTTIME"):  # includes time asleep, unlike monotonic()
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def jittered(seconds: float, *, low: float = 0.75, high: float = 1.25) -> float:
    """Spread `seconds` uniformly, so that many processes do not act in step."""
    return seconds * _random.uniform(low, high)
