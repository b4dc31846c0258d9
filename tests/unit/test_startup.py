"""What a worker process does to itself before it starts."""

import gc
from collections.abc import Iterator

import pytest

from horsies.worker.startup import _collect_rarely


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_collections_become_rare_and_leave_the_modules_out() -> None:
    gc.set_threshold(700, 10, 10)

    _collect_rarely()

    assert gc.get_threshold() == (10_000, 10, 10)
    assert gc.get_freeze_count() > 10_000


@pytest.mark.parametrize("threshold", [0, 50_000])
def test_what_the_app_itself_has_set_stays(threshold: int) -> None:
    gc.set_threshold(threshold, 10, 10)

    _collect_rarely()

    assert gc.get_threshold()[0] == threshold
