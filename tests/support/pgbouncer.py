"""PgBouncer before a test database: the system's, or Debian's package unpacked beside the tests."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from horsies.embedded_postgres import locks
from horsies.embedded_postgres.privileges import server_account
from support.eventually import eventually
from support.urls import Place, changed, place_of

_SYSTEM = "/usr/sbin:/usr/bin:/usr/local/bin"
_APT = ["apt-get", "-q", "-o", "Acquire::http::Timeout=10", "-o", "Acquire::Retries=0"]


@dataclass(frozen=True, slots=True)
class Program:
    path: str
    libraries: str = ""

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": self.libraries} if self.libraries else {}


def find_pgbouncer(system_path: str = _SYSTEM, cache: Path | None = None) -> Program | None:
    """The program, fetched if need be; `None` where that is impossible."""
    if found := shutil.which("pgbouncer", path=system_path):
        return Program(found)
    cache = cache or Path(tempfile.gettempdir()) / f"horsies-pgbouncer-{os.getuid()}"
    cache.mkdir(mode=0o755, exist_ok=True)
    with locks.exclusive(cache / "lock", within=180):
        return _unpacked(cache) or (_unpacked(cache) if _fetch(cache) else None)


def _unpacked(cache: Path) -> Program | None:
    libraries = sorted({str(library.parent) for library in cache.rglob("*.so*")})
    program = Program(str(cache / "usr/sbin/pgbouncer"), ":".join(libraries))
    works = _run([program.path, "--version"], cache, program.environment) is not None
    return program if works else None


def _fetch(cache: Path) -> bool:
    """Unpack the package and the libraries it needs, without installing anything."""
    if _run([*_APT, "download", "pgbouncer"], cache) is None:
        if os.getuid() != 0 or _run([*_APT, "update"], cache) is None:
            return False
        _run([*_APT, "download", "pgbouncer"], cache)
    depends = _run(["apt-cache", "depends", "pgbouncer"], cache) or ""
    for library in re.findall(r"Depends: (lib[^\s<]+)", depends):
        _run([*_APT, "download", library], cache)
    packages = [_run(["dpkg", "-x", str(p), str(cache)], cache) for p in cache.glob("*.deb")]
    return bool(packages)


def _run(
    command: Sequence[str], directory: Path, environment: dict[str, str] | None = None
) -> str | None:
    """What a program prints; `None` when it fails, hangs or is not there."""
    try:
        done = subprocess.run(
            command, cwd=directory, env=os.environ | (environment or {}), text=True,
            capture_output=True, timeout=120, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


@contextmanager
def pooled(program: Program, url: str) -> Iterator[str]:
    """The URL of the same database behind PgBouncer in transaction mode."""
    user, name = (conninfo_to_dict(url)[part] for part in ("user", "dbname"))
    host, port = place_of(url)
    directory = Path(tempfile.mkdtemp(prefix="horsies-bouncer-"))
    directory.chmod(0o777)
    (directory / "ini").write_text(
        f"[databases]\n{name} = host={host} port={port} user={user} dbname={name}\n"
        f"[pgbouncer]\nunix_socket_dir = {directory}\nlisten_port = 6432\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 5\n"
    )
    bouncer = server_account().start(
        [program.path, str(directory / "ini")],
        log=subprocess.DEVNULL,
        environment=program.environment,
    )
    try:
        eventually((directory / ".s.PGSQL.6432").exists, within=10)
        yield changed(url, place=Place(str(directory), 6432))
    finally:
        bouncer.terminate()
        bouncer.wait()
        shutil.rmtree(directory)
