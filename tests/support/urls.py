"""Database URLs taken apart by the driver: host and port may stand anywhere in them, or nowhere."""

from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict


class Place(NamedTuple):
    """Where a server listens: a host name, or the directory of its socket."""

    host: str
    port: int

    @property
    def socket(self) -> str | None:
        return f"{self.host}/.s.PGSQL.{self.port}" if self.host.startswith("/") else None


def place_of(url: str) -> Place:
    """Where this URL leads; who connects knows what it leaves to defaults."""
    with psycopg.connect(url) as connection:
        return Place(connection.info.host, connection.info.port)


def changed(
    url: str, *, user: str | None = None, database: str | None = None, place: Place | None = None
) -> str:
    """The URL with some parts replaced. A new user has no password."""
    parameters: dict[str, Any] = dict(conninfo_to_dict(url))
    if user is not None:
        parameters.pop("password", None)
        parameters["user"] = user
    if database is not None:
        parameters["dbname"] = database
    if place is not None:
        parameters |= {"host": place.host, "port": place.port}
        parameters.pop("hostaddr", None)
    return _joined(parameters)


def _joined(parameters: dict[str, Any]) -> str:
    login = quote(parameters.pop("user", ""), safe="")
    if "password" in parameters:
        login += f":{quote(parameters.pop('password'), safe='')}"
    name = quote(parameters.pop("dbname", ""), safe="")
    server = ""
    if not str(parameters.get("host", "/")).startswith("/"):
        server = parameters.pop("host")
        server += f":{parameters.pop('port')}" if "port" in parameters else ""
    query = urlencode(parameters, safe="/", quote_via=quote)
    return f"postgresql://{login}@{server}/{name}" + (f"?{query}" if query else "")
