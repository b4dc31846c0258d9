"""Which app or database a viewer shows: MODULE, a URL, the environment or a `.env` file."""

import functools
import os
import re
from pathlib import Path
from typing import Any

import click

from horsies.app import Horsies
from horsies.cli.operating import MODULE, Command, find_app

_URLS = ("HORSIES_DATABASE_URL", "DATABASE_URL")
_LINE = re.compile(r"\s*(?:export\s+)?(\w+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s#]*))")


def takes_viewed_app(function: Command) -> Command:
    """Add [MODULE], -m and -d to a command, which gets `app`."""

    @click.argument("place", required=False, metavar="[MODULE]")
    @MODULE
    @click.option("-d", "--database-url", metavar="URL", help="The database, without an app.")
    @functools.wraps(function)
    def command(
        place: str | None, module: str | None, database_url: str | None, **rest: Any
    ) -> object:
        locator = module or place
        if locator is not None and database_url is not None:
            raise click.UsageError("give MODULE or --database-url, not both")
        return function(app=find_viewed_app(locator, database_url), **rest)

    return command


def find_viewed_app(locator: str | None, database_url: str | None) -> Horsies:
    """An app on the given URL, the named app, or what the environment or `.env` names."""
    if database_url is not None:
        return Horsies(database_url)
    names = ("HORSIES_APP", *_URLS)
    if locator is None and not any(os.environ.get(name) for name in names):
        url = url_in(Path(".env"))
        if url is not None:
            return Horsies(url)
    return find_app(locator)


def url_in(file: Path) -> str | None:
    """The database URL of a `.env` file, if there is one."""
    if not file.is_file():
        return None
    lines = (_LINE.match(line) for line in file.read_text("utf-8", "replace").splitlines())
    found = {line[1]: line[2] or line[3] or line[4] for line in lines if line}
    return next((found[name] for name in _URLS if found.get(name)), None)
