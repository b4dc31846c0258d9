"""Who may log in to a server that root has started: on its socket root alone, by TCP a password.

The rules in the data directory let in whoever can enter the directory of the socket. That suffices
for a user's own server. A server of root runs as another user, whose other processes can enter too.
"""

import os
import pwd
from pathlib import Path

from horsies.embedded_postgres.launch import Launch

_MAP = "horsies"
_RULES = f"""\
local all all peer map={_MAP}
host all all 127.0.0.1/32 scram-sha-256
"""


def settings(launch: Launch) -> dict[str, str]:
    """Return the settings that make the server use our rules; none for a user's own server."""
    if not launch.account.is_dropped:
        return {}
    return {"hba_file": str(launch.home.login_rules), "ident_file": str(launch.home.login_names)}


def write_rules(launch: Launch) -> None:
    """Write the rules anew at each start, outside the data directory: its user owns that."""
    if launch.account.is_dropped:
        _write(launch.home.login_rules, _RULES)
        _write(launch.home.login_names, _names(launch.binaries.major))


def _names(major: int) -> str:
    """Let the user of this process log in as any role. PostgreSQL 15 has no word for any role."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    roles = ["all"] if major >= 16 else ["postgres", "horsies"]
    return "".join(f'{_MAP} "{user}" {role}\n' for role in roles)


def _write(file: Path, text: str) -> None:
    temporary = file.with_name(f"{file.name}.tmp")
    temporary.write_text(text)
    temporary.chmod(0o644)  # the server reads it as its own user
    temporary.replace(file)
