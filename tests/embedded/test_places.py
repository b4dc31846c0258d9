"""Where the server's files and its socket go."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest

from horsies.embedded_postgres import EmbeddedServer, home, status, stop
from horsies.embedded_postgres.privileges import server_account
from horsies.errors import ConfigurationError
from support.cluster import give_data, make_directory, remove_directory
from support.embedded import require_root, supervisor_of
from support.eventually import eventually

Acquire = Callable[..., EmbeddedServer]


@pytest.mark.parametrize("marker", ["pyproject.toml", ".horsies/"])
def test_project_is_the_nearest_marked_parent(tmp_path: Path, marker: str) -> None:
    inside = tmp_path / "package" / "module"
    inside.mkdir(parents=True)
    (tmp_path / marker).mkdir() if marker.endswith("/") else (tmp_path / marker).touch()

    assert home.nearest_project(inside) == tmp_path


def test_unmarked_directory_is_its_own_project(tmp_path: Path) -> None:
    assert home.nearest_project(tmp_path) == tmp_path


def test_horsies_home_names_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORSIES_HOME", str(project))

    assert home.locate().directory == project / ".horsies" / "pg"


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/home/me/project", "ext4"), ("/home/me/shared/project", "nfs4"), ("/mnt/c/project", "9p")],
)
def test_filesystem_is_that_of_the_nearest_mount(path: str, kind: str) -> None:
    mounts = [
        ("/", "ext4"),
        ("/home/me/shared", "nfs4"),
        ("/home/me/share", "cifs"),
        ("/mnt/c", "9p"),
    ]

    assert home.filesystem_type(Path(path), mounts) == kind


def test_network_filesystem_is_refused(
    acquire: Acquire, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = home.filesystem_type(
        project,
        [(mount.mountpoint, mount.fstype) for mount in psutil.disk_partitions(all=True)],
    )
    monkeypatch.setattr(home, "NETWORK_FILESYSTEMS", {here})

    with pytest.raises(ConfigurationError, match="network filesystem"):
        acquire()

    assert not (project / ".horsies").exists()


@pytest.mark.parametrize("name", ["d" * 150, "one, two", "with space and ü"])
def test_awkward_project_path_works(acquire: Acquire, project: Path, name: str) -> None:
    server = acquire(directory=project / name)

    with psycopg.connect(server.url) as connection:
        socket = Path(connection.info.host)
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700

    server.release()
    remove_directory(project / name)
    assert not socket.exists()


def test_socket_in_a_short_place_is_found_from_any_environment(
    acquire: Acquire, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = give_data(project / ("d" * 150))
    first = acquire(directory=deep)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(project))
    monkeypatch.setattr("tempfile.tempdir", str(project))

    assert acquire(directory=deep).url == first.url

    remove_directory(deep)


def test_short_place_prepared_by_somebody_else_is_refused(
    acquire: Acquire, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(project))
    deep = project / ("d" * 150)
    planted = home.socket_directory(home.locate(deep), server_account())
    planted.mkdir()
    planted.chmod(0o777)

    with pytest.raises(ConfigurationError, match="not private"):
        acquire(directory=deep)


def test_git_ignores_the_directory(idle_server: EmbeddedServer) -> None:
    assert (idle_server.directory.parent / ".gitignore").read_text() == "*\n"


@pytest.mark.usefixtures("has_data")
def test_moved_directory_gets_a_new_server_and_the_old_one_ends(
    acquire: Acquire, project: Path
) -> None:
    acquire()
    old, supervisor = status(project).postmaster_pid, supervisor_of(project)
    assert old

    supervisor.suspend()  # until the new server is up: the worst moment to notice
    (project / ".horsies").rename(project / "moved")
    server = acquire()
    supervisor.resume()

    eventually(lambda: not psutil.pid_exists(old))
    with psycopg.connect(server.url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_only_data_and_socket_belong_to_the_server_user(idle_server: EmbeddedServer) -> None:
    require_root()
    directory = idle_server.directory

    owners = {path.name: path.lstat().st_uid for path in directory.iterdir()}

    assert {name for name, uid in owners.items() if uid != 0} == {"data", "run"}
    assert directory.stat().st_uid == 0


@pytest.mark.parametrize("place", [".horsies", ".horsies/pg"])
def test_a_link_of_another_user_is_not_followed(
    acquire: Acquire, project: Path, place: str
) -> None:
    require_root()
    elsewhere = project / "elsewhere"
    elsewhere.mkdir()
    link = project / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    os.chown(link, 1, 1, follow_symlinks=False)

    for use in (acquire, lambda: status(project), lambda: stop(project)):
        with pytest.raises(ConfigurationError, match=f"{place} is a link of another user"):
            use()

    link.unlink()  # the fixture stops what it finds
    assert list(elsewhere.iterdir()) == []


def test_a_directory_of_another_user_is_not_used(acquire: Acquire, project: Path) -> None:
    require_root()
    (project / ".horsies").mkdir()
    os.chown(project / ".horsies", 1, 1)

    with pytest.raises(ConfigurationError, match=r"\.horsies belongs to another user"):
        acquire()

    assert list((project / ".horsies").iterdir()) == []


def test_a_link_of_our_own_is_followed(acquire: Acquire, project: Path) -> None:
    elsewhere = make_directory()
    (project / ".horsies").symlink_to(elsewhere)

    server = acquire()
    with psycopg.connect(server.url) as connection:
        connection.execute("select 1")
    server.release()
    stop(project)

    assert (elsewhere / "pg").is_dir()
    remove_directory(elsewhere)


def test_root_leaves_a_home_of_another_user_alone(acquire: Acquire, project: Path) -> None:
    require_root()
    directory = project / ".horsies" / "pg"
    directory.mkdir(parents=True)
    os.chown(directory, 1, 1)

    with pytest.raises(ConfigurationError, match="belongs to another user"):
        acquire()


def test_root_in_a_closed_directory_uses_the_system_directory(
    acquire: Acquire, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_root()
    system = make_directory()
    monkeypatch.setattr(home, "SYSTEM_DIRECTORY", system)
    project.chmod(0o700)

    server = acquire()

    assert server.directory.parent == system
    assert stat.S_IMODE(project.stat().st_mode) == 0o700
    assert not (project / ".horsies").exists()
    stop(project)
    shutil.rmtree(system)
