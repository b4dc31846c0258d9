"""The user of the server: PostgreSQL refuses to run as root, so root uses an unprivileged user.

This module creates no account and changes no permissions outside our own directories.
"""

import os
import pwd
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from horsies.embedded_postgres.refusals import refusal


@dataclass(frozen=True, slots=True)
class Account:
    """The user that runs server programs; `is_dropped` if we are root and have to switch to it."""

    uid: int
    gid: int
    is_dropped: bool

    def run(self, command: Sequence[str | Path], *, stdin: str = "") -> tuple[int, str]:
        """Run a program to its end; return its exit code and everything it printed."""
        finished = subprocess.run(
            command,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
            errors="replace",
            cwd="/",
            env=scrubbed_environment(),
            user=self.uid if self.is_dropped else None,
            group=self.gid if self.is_dropped else None,
            extra_groups=[] if self.is_dropped else None,
        )
        return finished.returncode, finished.stdout

    def start(
        self, command: Sequence[str | Path], *, log: int, environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        """Start a program in its own session, where a Ctrl-C in the terminal does not reach it."""
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=scrubbed_environment() | dict(environment),
            start_new_session=True,
            user=self.uid if self.is_dropped else None,
            group=self.gid if self.is_dropped else None,
            extra_groups=[] if self.is_dropped else None,
        )

    def can_reach(self, path: Path) -> bool:
        """Whether this user can enter the directory; the kernel decides, so access lists count."""
        code, _ = self.run(["/bin/sh", "-c", 'test -x "$0"', path])
        return code == 0


def server_account() -> Account:
    uid = os.geteuid()
    _require_name(uid)
    if uid != 0:
        return Account(uid, os.getegid(), is_dropped=False)
    name = os.environ.get("HORSIES_PG_USER") or "nobody"
    try:
        entry = pwd.getpwnam(name)
    except KeyError as error:
        raise refusal(
            f"embedded PostgreSQL cannot run as root, and there is no user {name!r} to run it as",
            cure="set HORSIES_PG_USER to an existing unprivileged user",
        ) from error
    if entry.pw_uid == 0:
        raise refusal(
            f"embedded PostgreSQL cannot run as {name!r}: that is root",
            cure="set HORSIES_PG_USER to an existing unprivileged user",
        )
    return Account(entry.pw_uid, entry.pw_gid, is_dropped=True)


def scrubbed_environment() -> dict[str, str]:
    """Return our environment without variables that mislead initdb and postgres.

    These are locales that this machine may not have, and settings for another database.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("LANG", "LANGUAGE") and not name.startswith(("LC_", "PG"))
    }


def make_private(directory: Path, account: Account) -> None:
    """Create a directory that only this user can enter; refuse an existing one that is open."""
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        if not is_private(directory, account.uid):
            raise refusal(
                f"embedded PostgreSQL: {directory} is not private to user {account.uid}",
                cure="remove it, or set HORSIES_HOME to another directory",
            ) from None
        return
    if account.is_dropped:
        os.chown(directory, account.uid, account.gid)


def is_private(directory: Path, uid: int) -> bool:
    try:
        found = directory.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o077


def _require_name(uid: int) -> None:
    try:
        pwd.getpwuid(uid)
    except KeyError as error:
        raise refusal(
            f"embedded PostgreSQL cannot run as user {uid}: the system has no name for it",
            cure="set HORSIES_DATABASE_URL to a PostgreSQL of your own, or run as a named user",
        ) from error
