"""The fallback poll is spread at random, so that many workers do not ask in step."""

import pytest

from horsies.clock import jittered
from horsies.config import WorkerResilienceConfig
from horsies.worker import claimer


@pytest.mark.seed("S70")
def test_poll_comes_after_three_to_nine_seconds_at_random() -> None:
    interval_s = WorkerResilienceConfig().notify_poll_interval_ms / 1000

    waits = [
        jittered(interval_s, low=claimer._POLL_LOW, high=claimer._POLL_HIGH) for _ in range(2_000)
    ]

    assert 3 <= min(waits) < 3.5
    assert 8.5 < max(waits) <= 9
