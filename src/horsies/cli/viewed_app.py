"""Which app or database a viewer shows: MODULE, a URL, the environment or a `.env` file."""

import functools
from typing import Any

import click

from horsies.app import Horsies
from horsies.cli.operating import MODULE, Command, find_app


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
    return Horsies(database_url) if database_url is not None else find_app(locator)
