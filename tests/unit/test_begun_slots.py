"""Begun slots: what they tell, who removes them, and whom they trust."""

import errno
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from horsies.recovery import begun_slots as begun_slots_module
from horsies.recovery.begun_slots import BegunSlots, create_begun_slots, find_begun_slots

DAY_S = 86_400


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the slots of this test lie; nobody has made it yet."""
    monkeypatch.setattr(begun_slots_module, "SHARED_MEMORY", str(tmp_path))
    return tmp_path / f"horsies-{os.getuid()}"


@pytest.fixture
def slots() -> Iterator[BegunSlots]:
    made = created()
    yield made
    made.remove()


def created() -> BegunSlots:
    made = create_begun_slots(str(uuid.uuid4()))
    assert made is not None
    return made


def found(worker_id: str) -> BegunSlots:
    peer = find_begun_slots(worker_id)
    assert peer is not None
    return peer


def test_peer_reads_what_has_begun_and_is_not_recorded() -> None:
    own = created()
    ids = [str(uuid.uuid4()) for _ in range(3)]
    places = [own.place(one) for one in ids]
    for place in places[:2]:
        own.begin(place)
    own.release(places[0])

    peer = found(own.worker_id)

    assert peer.begun_ids() == {ids[1]}
    assert not peer.is_abandoned
    peer.close()
    own.remove()
    assert find_begun_slots(own.worker_id) is None


@pytest.mark.parametrize("task_id", ["a", "{", "a,b", "ä" * 36, "\U0001f40e" * 36, "x" * 36])
def test_any_id_a_row_can_hold_is_told_as_it_is(slots: BegunSlots, task_id: str) -> None:
    slots.begin(slots.place(task_id))

    assert slots.begun_ids() == {task_id}


def test_slots_of_a_worker_that_is_gone_are_abandoned() -> None:
    own = created()
    own.close()

    peer = found(own.worker_id)

    assert peer.is_abandoned
    peer.close()


def test_new_worker_removes_what_was_forgotten_days_ago(directory: Path) -> None:
    old, living, recent = created(), created(), created()
    old.close()
    recent.close()
    (directory / "not one of ours").touch()
    for name in (old.worker_id, living.worker_id, "not one of ours"):
        past = (directory / name).stat().st_mtime - 2 * DAY_S
        os.utime(directory / name, (past, past))

    newest = created()

    assert sorted(path.name for path in directory.iterdir()) == sorted(
        [living.worker_id, recent.worker_id, newest.worker_id, "not one of ours"]
    )
    living.remove()
    newest.remove()


@pytest.mark.parametrize("worker_id", ["/etc/passwd", "../x", "", ".", "a b", "A" * 36, "{"])
def test_a_row_names_no_file(directory: Path, worker_id: str, tmp_path: Path) -> None:
    created().remove()
    victim = tmp_path / "victim"
    victim.write_bytes(b"\0" * 10_000_000)

    assert find_begun_slots(worker_id) is None
    assert find_begun_slots(str(victim)) is None
    assert victim.exists()


def test_a_binary_file_in_their_place_tells_nothing(directory: Path) -> None:
    own = created()
    own.close()
    path = directory / own.worker_id
    path.write_bytes(b"\x01\x90\xff\xfe" * (path.stat().st_size // 4))

    peer = found(own.worker_id)

    assert peer.begun_ids() is None
    peer.close()


def test_a_link_in_their_place_is_not_followed(directory: Path, tmp_path: Path) -> None:
    own = created()
    own.close()
    path = directory / own.worker_id
    target = tmp_path / "target"
    path.rename(target)
    path.symlink_to(target)

    assert find_begun_slots(own.worker_id) is None


@pytest.mark.parametrize("how", ["link", "open to all", "file"])
def test_a_directory_that_is_not_ours_alone_is_refused(
    directory: Path, tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    if how == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        directory.symlink_to(tmp_path / "elsewhere")
    elif how == "open to all":
        directory.mkdir()
        directory.chmod(0o777)
    else:
        directory.touch()

    assert create_begun_slots(str(uuid.uuid4())) is None
    assert "no shared memory for begun slots" in caplog.text
    assert [path.name for path in tmp_path.glob("elsewhere/*")] == []


def test_another_users_directory_is_refused(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a directory away")
    directory.mkdir(mode=0o700)
    os.chown(directory, 12345, 12345)

    assert create_begun_slots(str(uuid.uuid4())) is None
    assert "not private" in caplog.text


def test_full_shared_memory_costs_the_slots_and_not_the_worker(tmp_path: Path) -> None:
    """Docker gives 64 MB, and someone else may have taken them."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("a small file system can only be mounted by root")
    try:
        program = (
            "import sys, uuid, logging; logging.basicConfig()\n"
            "from horsies.recovery import begun_slots\n"
            "begun_slots.SHARED_MEMORY = sys.argv[1]\n"
            "print(begun_slots.create_begun_slots(str(uuid.uuid4())))\n"
        )
        ran = subprocess.run(
            [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False
        )
        left = list(tmp_path.glob("horsies-*/*"))
    finally:
        subprocess.run(["umount", tmp_path], check=True)

    assert (ran.returncode, ran.stdout.strip()) == (0, "None")
    assert os.strerror(errno.ENOSPC) in ran.stderr
    assert left == []
