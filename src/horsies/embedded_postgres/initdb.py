"""Create a data directory with our role and database, completely or not at all."""

import shutil
from importlib.resources import files
from pathlib import Path

from horsies.embedded_postgres.binaries import Binaries
from horsies.embedded_postgres.privileges import Account, make_private
from horsies.embedded_postgres.refusals import refusal


def create_cluster(binaries: Binaries, account: Account, data: Path) -> None:
    temporary = data.with_name("data.tmp")
    if temporary.exists():
        shutil.rmtree(temporary)  # left by an interrupted attempt
    make_private(temporary, account)
    _run(account, [binaries.directory / "initdb", "-D", temporary, *_options(binaries.major)])
    # Single-user mode: the role and database exist before any client can find the server.
    _run(
        account,
        [
            *(binaries.directory / "postgres", "--single", "-j", "-D", temporary),
            *("-c", "exit_on_error=true", "-c", "log_checkpoints=off", "postgres"),
        ],
        stdin=files("horsies.embedded_postgres").joinpath("sql", "bootstrap.sql").read_text(),
    )
    temporary.rename(data)


def _options(major: int) -> list[str]:
    """Set the locales explicitly: LANG may name one that this machine does not have."""
    provider = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if major >= 17 else []
    return [
        *("-U", "postgres", "-E", "UTF8", "-k", "--auth-local=trust", "--auth-host=scram-sha-256"),
        *provider,
        "--locale=C",
    ]


def _run(account: Account, command: list[str | Path], *, stdin: str = "") -> None:
    code, output = account.run(command, stdin=stdin)
    if code != 0:
        name = Path(command[0]).name
        raise refusal(f"embedded PostgreSQL: {name} failed with exit code {code}", output.strip())
