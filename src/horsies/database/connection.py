"""How to connect: what holds for every session of ours, whatever the role's defaults are."""

from dataclasses import dataclass, replace

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from horsies.database.echo import AsyncEchoCursor, EchoCursor
from horsies.database.loading import register_loaders
from horsies.passwords import mask_error

_DRIVER: dict[str, str | int] = {
    "connect_timeout": 10,
    # A peer that vanished without a word is noticed in about half a minute instead of hours.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
# What our statements rely on; a role or a database may have other defaults.
_SESSION = {
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "idle_in_transaction_session_timeout": "60s",
    "idle_session_timeout": "0",
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "array_nulls": "on",
    "row_security": "on",
    "jit": "off",  # our statements are short; compiling one costs more than running it
}
# A server notices within this time that its client has hung up, where its system can tell.
_HANG_UP_CHECK = "5s"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the tables are and how sessions there behave.

    The server ends a statement after `statement_limit_s`, and a wait for a lock after
    `lock_limit_s`: both before the client gives up, so that nobody wonders what became of it.
    """

    url: str
    schema: str | None = None
    is_pooled: bool = False  # behind a transaction-mode pooler: nothing may outlive a transaction
    is_echoed: bool = False
    statement_limit_s: float | None = None
    lock_limit_s: float | None = None

    def limited(self, statement_s: float, lock_s: float) -> "Address":
        """The same place, for sessions with these limits."""
        return replace(self, statement_limit_s=statement_s, lock_limit_s=lock_s)

    def connect(self, name: str = "horsies") -> Connection[TupleRow]:
        try:
            try:
                connection = self._connect(name, checks_hang_up=True)
            except psycopg.OperationalError as error:
                if not _is_about_the_check(error):
                    raise
                connection = self._connect(name, checks_hang_up=False)
        except psycopg.Error as error:
            raise self._masked(error) from None
        if self.is_echoed:
            connection.cursor_factory = EchoCursor
        return connection

    def _connect(self, name: str, *, checks_hang_up: bool) -> Connection[TupleRow]:
        connection = psycopg.connect(self._conninfo(name, checks_hang_up=checks_hang_up))
        connection.autocommit = True
        connection.prepare_threshold = None if self.is_pooled else 5
        register_loaders(connection)
        return connection

    async def connect_async(self, name: str = "horsies") -> AsyncConnection[TupleRow]:
        try:
            try:
                connection = await self._connect_async(name, checks_hang_up=True)
            except psycopg.OperationalError as error:
                if not _is_about_the_check(error):
                    raise
                connection = await self._connect_async(name, checks_hang_up=False)
        except psycopg.Error as error:
            raise self._masked(error) from None
        if self.is_echoed:
            connection.cursor_factory = AsyncEchoCursor
        return connection

    async def _connect_async(self, name: str, *, checks_hang_up: bool) -> AsyncConnection[TupleRow]:
        conninfo = self._conninfo(name, checks_hang_up=checks_hang_up)
        connection = await AsyncConnection.connect(conninfo, autocommit=True)
        connection.prepare_threshold = None if self.is_pooled else 5
        register_loaders(connection)
        return connection

    def _masked(self, error: psycopg.Error) -> psycopg.Error:
        """The same error without the password that libpq may repeat from the URL."""
        return type(error)(mask_error(str(error), self.url))

    def _conninfo(self, name: str, *, checks_hang_up: bool) -> str:
        """What the URL says, and ours where it says nothing."""
        given = conninfo_to_dict(self.url)
        ours = {**_DRIVER, "application_name": name}
        if "," in str(given.get("host")):
            # Of a primary and its standbys, the one that takes writes.
            ours["target_session_attrs"] = "read-write"
        parameters = {key: value for key, value in ours.items() if key not in given}
        # Of two words about one setting, the server takes the later.
        words = [self._own_settings(checks_hang_up=checks_hang_up), given.get("options")]
        if self.schema is not None:
            words.append(_option("search_path", '"' + self.schema.replace('"', '""') + '"'))
        if options := " ".join(str(word) for word in words if word):
            parameters["options"] = options
        parameters["client_encoding"] = "UTF8"  # our texts are, whatever the URL says
        return make_conninfo(self.url, **parameters)

    def _own_settings(self, *, checks_hang_up: bool) -> str:
        if self.is_pooled:
            return ""
        settings = dict(_SESSION)
        if checks_hang_up:
            settings["client_connection_check_interval"] = _HANG_UP_CHECK
        if self.statement_limit_s is not None:
            settings["statement_timeout"] = f"{self.statement_limit_s * 1000:.0f}ms"
        if self.lock_limit_s is not None:
            settings["lock_timeout"] = f"{self.lock_limit_s * 1000:.0f}ms"
        return " ".join(_option(setting, value) for setting, value in settings.items())


def _option(setting: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace(" ", "\\ ")
    return f"-c {setting}={escaped}"


def _is_about_the_check(error: psycopg.Error) -> bool:
    """Servers on some systems cannot notice a hang-up and refuse the setting."""
    return "client_connection_check_interval" in str(error)
