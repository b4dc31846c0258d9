"""What a supervisor needs to run one server: chosen by the first user, passed as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from horsies.embedded_postgres.binaries import Binaries
from horsies.embedded_postgres.home import Home
from horsies.embedded_postgres.privileges import Account

START_SECONDS = 60.0  # crash recovery of a large queue takes a while


@dataclass(frozen=True, slots=True)
class Launch:
    home: Home
    binaries: Binaries
    account: Account
    socket_directory: Path
    idle_timeout: float
    settings: Mapping[str, str]
    port: int | None

    def to_json(self) -> str:
        return json.dumps(
            {
                "home": str(self.home.directory),
                "binaries": [str(self.binaries.directory), self.binaries.version],
                "account": [self.account.uid, self.account.gid, self.account.is_dropped],
                "socket_directory": str(self.socket_directory),
                "idle_timeout": self.idle_timeout,
                "settings": dict(self.settings),
                "port": self.port,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Launch":
        fields = json.loads(text)
        directory, version = fields["binaries"]
        uid, gid, is_dropped = fields["account"]
        return cls(
            home=Home(Path(fields["home"])),
            binaries=Binaries(Path(directory), version),
            account=Account(uid, gid, is_dropped=is_dropped),
            socket_directory=Path(fields["socket_directory"]),
            idle_timeout=fields["idle_timeout"],
            settings=fields["settings"],
            port=fields["port"],
        )
