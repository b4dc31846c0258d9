"""Ids: UUID version 7, ascending also within one millisecond and over a clock that goes back."""

import time
import uuid

import pytest

from horsies.ids import new_id, new_ids


def test_ids_are_uuids_of_version_7_that_carry_their_time() -> None:
    before = time.time_ns() // 1_000_000

    made = uuid.UUID(new_id())

    assert str(made) == made.urn.removeprefix("urn:uuid:")
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before - 1 <= made.int >> 80 <= time.time_ns() // 1_000_000 + 1_000


def test_ids_ascend_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_ids(5_000)
    monkeypatch.setattr(time, "time_ns", lambda: 0)  # the clock jumped back by decades

    made = [*first, *new_ids(5_000), new_id()]

    assert made == sorted(set(made))
    assert all(str(uuid.UUID(one)) == one for one in made)
