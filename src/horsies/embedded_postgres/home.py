"""Where an embedded server keeps its files: `.horsies/pg` of the project, or a substitute."""

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from horsies.embedded_postgres.privileges import Account, server_account
from horsies.embedded_postgres.refusals import refusal

SYSTEM_DIRECTORY = Path("/var/lib/horsies")  # for root, if other users cannot enter the project

# File locks and the files of PostgreSQL need a filesystem that only this machine writes to.
NETWORK_FILESYSTEMS = frozenset(
    {"9p", "afs", "cifs", "drvfs", "fuse.sshfs", "nfs", "nfs4", "smb3", "smbfs"}
)
_SOCKET_NAME = ".s.PGSQL.5432"
_LONGEST_SOCKET_NAME = ".s.PGSQL.65535"
_SOCKET_PATH_LIMIT = 107 if sys.platform == "linux" else 103


@dataclass(frozen=True, slots=True)
class Home:
    """The files of one server. Under root, the server's user owns only `data` and `run`."""

    directory: Path

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def run(self) -> Path:
        return self.directory / "run"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def record(self) -> Path:
        return self.directory / "server.json"

    @property
    def password(self) -> Path:
        return self.directory / "password"

    @property
    def login_rules(self) -> Path:
        return self.directory / "pg_hba.conf"

    @property
    def login_names(self) -> Path:
        return self.directory / "pg_ident.conf"

    @property
    def use_lock(self) -> Path:
        return self.directory / "use.lock"

    @property
    def start_lock(self) -> Path:
        return self.directory / "start.lock"

    @property
    def supervisor_lock(self) -> Path:
        return self.directory / "supervisor.lock"


def locate(project: Path | None = None) -> Home:
    """Find the home of a project's server; defaults to HORSIES_HOME, then the nearest project."""
    project = (project or _configured_project() or nearest_project(Path.cwd())).expanduser()
    project = project.resolve()
    home = Home(project / ".horsies" / "pg")
    for directory in (home.directory.parent, home.directory):
        _refuse_foreign(directory, (0, os.geteuid()), only_links=True)
    account = server_account()
    # An existing cluster stays where it is; never start an empty one elsewhere.
    if account.is_dropped and not home.data.exists() and not _is_reachable(project, account):
        return Home(SYSTEM_DIRECTORY / short_hash(project))
    return home


def prepare(home: Home) -> Home:
    """Create the home directory; refuse one that cannot contain a server."""
    if home.directory.parent.name == ".horsies":
        _refuse_foreign(home.directory.parent, (0, os.geteuid()))
    _require_local_filesystem(home.directory)
    made = [path for path in (home.directory, *home.directory.parents) if not path.exists()]
    home.directory.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        _open_to_server_user(made)
    _refuse_foreign(home.directory, [os.geteuid()])
    marker = home.directory.parent / ".gitignore"
    if home.directory.parent.name == ".horsies" and not marker.exists():
        marker.write_text("*\n")
    return home


def socket_directory(home: Home, account: Account) -> Path:
    """Return `run`, or a short private directory if sockets or libpq cannot use that path."""
    path = str(home.run)
    # libpq splits hosts at a comma, and the server ends a directory at a quotation mark.
    is_short = len(os.fsencode(f"{path}/{_LONGEST_SOCKET_NAME}")) <= _SOCKET_PATH_LIMIT
    if is_short and not set(path) & set(',"'):
        return home.run
    runtime = None if account.is_dropped else os.environ.get("XDG_RUNTIME_DIR")
    base = Path(runtime or tempfile.gettempdir())
    return base / f"horsies-{account.uid}-{short_hash(home.directory)}"


def socket_file(directory: Path) -> Path:
    """Return the socket path that all our URLs use, whatever the port of the server."""
    return directory / _SOCKET_NAME


def all_socket_files(directory: Path) -> list[Path]:
    """List sockets, their lock files and our link, including those of an earlier server."""
    return list(directory.glob(".s.PGSQL.*"))


def nearest_project(start: Path) -> Path:
    for directory in (start, *start.parents):
        if (directory / ".horsies").is_dir() or (directory / "pyproject.toml").is_file():
            return directory
    return start


def filesystem_type(path: Path, mounts: Iterable[tuple[str, str]]) -> str:
    """Return the type of the filesystem of a path, given (mount point, type) pairs."""
    holding = [(len(point), kind) for point, kind in mounts if path.is_relative_to(point)]
    return max(holding, default=(0, ""))[1]


def short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def _configured_project() -> Path | None:
    configured = os.environ.get("HORSIES_HOME")
    return Path(configured) if configured else None


def _is_reachable(project: Path, account: Account) -> bool:
    existing = next(path for path in (project, *project.parents) if path.exists())
    return account.can_reach(existing)


def _refuse_foreign(directory: Path, owners: Iterable[int], *, only_links: bool = False) -> None:
    """Refuse what another user has laid here, such as a link to a place that only we may write.

    A link of our own is followed: it may lead to a larger disk.
    """
    try:
        found = directory.lstat()
    except FileNotFoundError:
        return
    is_link = stat.S_ISLNK(found.st_mode)
    if found.st_uid not in owners and (is_link or not only_links):
        what = "is a link of another user" if is_link else "belongs to another user"
        raise refusal(
            f"embedded PostgreSQL: {directory} {what}",
            cure="run as the user who created it, or set HORSIES_HOME to a directory of your own",
        )


def _open_to_server_user(directories: Iterable[Path]) -> None:
    """Undo a strict umask on directories we created, so that the server's user can enter them."""
    for directory in directories:
        directory.chmod(0o755)


def _require_local_filesystem(directory: Path) -> None:
    mounts = [(mount.mountpoint, mount.fstype) for mount in psutil.disk_partitions(all=True)]
    kind = filesystem_type(directory, mounts)
    if kind in NETWORK_FILESYSTEMS:
        raise refusal(
            f"embedded PostgreSQL cannot keep data on a network filesystem ({kind}): {directory}",
            cure="set HORSIES_HOME to a directory on a local disk",
        )
