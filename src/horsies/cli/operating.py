"""What the commands that see and steer share: the app they are about, filters, answers."""

import functools
import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import click

from horsies.app import Horsies
from horsies.cli.env_file import URL_VARIABLES, url_here
from horsies.cli.printing import echo
from horsies.clock import utc_now
from horsies.drawing.json_text import to_json
from horsies.locator import load_app
from horsies.operations.control import Note
from horsies.operations.filter_words import FilterError, is_filter_word, parse_filter, read_instant
from horsies.operations.filters import TaskFilter
from horsies.result import Err
from horsies.result.broker import BrokerResult

T = TypeVar("T")
Command = Callable[..., object]
as_json = click.option("--json", "is_json", is_flag=True, help="Print JSON for programs.")
MODULE = click.option("-m", "--module", help="The app: shop.queue:app or shop/queue.py:app.")


def takes_note(function: Command) -> Command:
    """Add --reason and --by; the command gets `note`."""

    @click.option("--reason", help="Why; shown by `horsies audit`.")
    @click.option("--by", help="Who; by default you on this machine.")
    @functools.wraps(function)
    def command(reason: str | None, by: str | None, **rest: Any) -> object:
        return function(note=Note(by, reason), **rest)

    return command


def takes_app(function: Command) -> Command:
    """Add [MODULE] and -m; the command gets `app`."""

    @click.argument("place", required=False, metavar="[MODULE]")
    @MODULE
    @functools.wraps(function)
    def command(place: str | None, module: str | None, **rest: Any) -> object:
        return function(app=find_app(module or place), **rest)

    return command


def takes_words(function: Command) -> Command:
    """Add [MODULE] [FILTER]... and -m; the command gets `locator` and `words`."""

    @click.argument("words", nargs=-1, metavar="[MODULE] [FILTER]...")
    @MODULE
    @functools.wraps(function)
    def command(words: tuple[str, ...], module: str | None, **rest: Any) -> object:
        if module is None and words and not is_filter_word(words[0]):
            module, *words_left = words
            words = tuple(words_left)
        return function(locator=module, words=words, **rest)

    return command


def takes_filter(function: Command) -> Command:
    """Add [MODULE] [FILTER]... and -m; the command gets `app` and `wanted`."""

    @takes_words
    @functools.wraps(function)
    def command(locator: str | None, words: tuple[str, ...], **rest: Any) -> object:
        wanted = read_filter(words)
        return function(app=find_app(locator), wanted=wanted, **rest)

    return command


def takes_task(function: Command) -> Command:
    """Add [MODULE] ID and -m; the command gets `app` and `task_id`, whole."""

    @click.argument("words", nargs=-1, required=True, metavar="[MODULE] ID")
    @MODULE
    @functools.wraps(function)
    def command(words: tuple[str, ...], module: str | None, **rest: Any) -> object:
        *places, prefix = words
        if len(places) > (module is None):
            raise click.UsageError(f"one task at a time, not {' '.join(words)}")
        app = find_app(module or next(iter(places), None))
        return function(app=app, task_id=value_of(app.operations.find_id(prefix)), **rest)

    return command


def find_app(locator: str | None, database_url: str | None = None) -> Horsies:
    """The named app; without a name, one on the database that the environment or project has."""
    locator = locator or os.environ.get("HORSIES_APP")
    if locator is None and (url := database_url or url_here()):
        return Horsies(url)
    is_known = any(os.environ.get(name) for name in URL_VARIABLES)
    if locator is None and (is_known or _has_embedded_server()):
        return Horsies()
    return load_app(locator)


def _has_embedded_server() -> bool:
    from horsies.embedded_postgres.home import locate  # most commands name an app

    return os.environ.get("HORSIES_EMBEDDED") != "0" and locate().data.is_dir()


def read_filter(words: Sequence[str]) -> TaskFilter:
    try:
        return parse_filter(words)
    except FilterError as error:
        raise click.UsageError(str(error)) from error


def read_age(name: str, text: str) -> timedelta:
    """How long ago an instant was: `2h`, or a time."""
    now = utc_now()
    try:
        return now - read_instant(name, text, now)
    except FilterError as error:
        raise click.UsageError(str(error)) from error


def value_of(result: BrokerResult[T]) -> T:
    """The value; an error ends the command with exit code 1."""
    if isinstance(result, Err):
        raise click.ClickException(result.err_value.message)
    return result.ok_value


def print_json(value: object) -> None:
    echo(to_json(value))


def local(at: datetime | None) -> str:
    """An instant on this machine's clock."""
    return "" if at is None else f"{at.astimezone():%F %T}"
