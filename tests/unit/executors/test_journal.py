"""The journal of begun runs: what it tells, and who removes it."""

import os
import uuid
from pathlib import Path

import pytest

from horsies.executors import journal as journal_module
from horsies.executors.journal import Journal, create_journal, find_journal

DAY_S = 86_400


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "journals"
    monkeypatch.setattr(journal_module, "_directory", lambda: place)
    return place


def created() -> Journal:
    journal = create_journal(str(uuid.uuid4()))
    assert journal is not None
    return journal


def test_journal_tells_what_has_begun_and_is_not_recorded() -> None:
    journal = created()
    ids = [str(uuid.uuid4()) for _ in range(3)]
    slots = [journal.place(one) for one in ids]
    for slot in slots[:2]:
        journal.begin(slot)
    journal.release(slots[0])

    found = find_journal(journal.path.name)

    assert found is not None
    assert found.begun_ids() == {ids[1]}
    assert not found.is_abandoned
    found.close()
    journal.remove()
    assert find_journal(journal.path.name) is None


def test_journal_of_a_worker_that_is_gone_is_abandoned() -> None:
    journal = created()
    journal.close()

    found = find_journal(journal.path.name)

    assert found is not None
    assert found.is_abandoned
    found.close()


def test_new_worker_removes_what_was_forgotten_days_ago(directory: Path) -> None:
    old, living, recent = created(), created(), created()
    old.close()
    recent.close()
    (directory / "not a journal").touch()
    for path in (old.path, living.path, directory / "not a journal"):
        past = path.stat().st_mtime - 2 * DAY_S
        os.utime(path, (past, past))

    newest = created()

    assert not old.path.exists()
    assert all(one.path.exists() for one in (living, recent, newest))
    living.remove()
    newest.remove()
