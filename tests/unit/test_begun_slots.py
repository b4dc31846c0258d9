"""The begun_slots of begun runs: what it tells, and who removes it."""

import os
import uuid
from pathlib import Path

import pytest

from horsies.recovery import begun_slots as begun_slots_module
from horsies.recovery.begun_slots import BegunSlots, create_begun_slots, find_begun_slots

DAY_S = 86_400


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "slots"
    monkeypatch.setattr(begun_slots_module, "_directory", lambda: place)
    return place


def created() -> BegunSlots:
    begun_slots = create_begun_slots(str(uuid.uuid4()))
    assert begun_slots is not None
    return begun_slots


def test_begun_slots_tells_what_has_begun_and_is_not_recorded() -> None:
    begun_slots = created()
    ids = [str(uuid.uuid4()) for _ in range(3)]
    slots = [begun_slots.place(one) for one in ids]
    for slot in slots[:2]:
        begun_slots.begin(slot)
    begun_slots.release(slots[0])

    found = find_begun_slots(begun_slots.path.name)

    assert found is not None
    assert found.begun_ids() == {ids[1]}
    assert not found.is_abandoned
    found.close()
    begun_slots.remove()
    assert find_begun_slots(begun_slots.path.name) is None


def test_begun_slots_of_a_worker_that_is_gone_is_abandoned() -> None:
    begun_slots = created()
    begun_slots.close()

    found = find_begun_slots(begun_slots.path.name)

    assert found is not None
    assert found.is_abandoned
    found.close()


def test_new_worker_removes_what_was_forgotten_days_ago(directory: Path) -> None:
    old, living, recent = created(), created(), created()
    old.close()
    recent.close()
    (directory / "not one of ours").touch()
    for path in (old.path, living.path, directory / "not one of ours"):
        past = path.stat().st_mtime - 2 * DAY_S
        os.utime(path, (past, past))

    newest = created()

    assert not old.path.exists()
    assert all(one.path.exists() for one in (living, recent, newest))
    living.remove()
    newest.remove()
