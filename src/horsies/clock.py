"""The only source of time: wall clock for records, monotonic clock for waiting, jitter for both."""

import random
import time
from datetime import UTC, datetime

_random = random.SystemRandom()


def utc_now() -> datetime:
    """The producer's or worker's own wall clock; the database's clock decides everything else."""
    return datetime.now(UTC)


def monotonic() -> float:
    return time.monotonic()


def since_boot() -> float:
    """Seconds since this machine started: the clock of process start times, which nobody sets."""
    if hasattr(time, "CLOCK_BOOTTIME"):  # counts sleep as well, where monotonic() does not
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def jittered(seconds: float, *, low: float = 0.75, high: float = 1.25) -> float:
    """`seconds` spread uniformly, so that many processes do not act in step."""
    return seconds * _random.uniform(low, high)
