"""What the commands that see and steer share: the app they are about, filters, answers."""

import functools
import json
import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import click
from pydantic_core import to_jsonable_python

from horsies.app import Horsies
from horsies.clock import utc_now
from horsies.locator import load_app
from horsies.operations.filter_words import FilterError, is_filter_word, parse_filter, read_instant
from horsies.operations.filters import TaskFilter
from horsies.result import Err
from horsies.result.broker import BrokerResult

T = TypeVar("T")
Command = Callable[..., object]
as_json = click.option("--json", "is_json", is_flag=True, help="Print JSON for programs.")
MODULE = click.option("-m", "--module", help="The app: shop.queue:app or shop/queue.py:app.")


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


def find_app(locator: str | None) -> Horsies:
    """The named app; without a name, one on the database that the environment or project has."""
    locator = locator or os.environ.get("HORSIES_APP")
    is_known = any(os.environ.get(name) for name in ("HORSIES_DATABASE_URL", "DATABASE_URL"))
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
    """As programs read it: named tuples as objects, instants as ISO text."""
    click.echo(json.dumps(to_jsonable_python(_plain(value), fallback=str), indent=2))


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(one) for name, one in value._asdict().items()}
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value


def local(at: datetime | None) -> str:
    """An instant on this machine's clock."""
    return "" if at is None else f"{at.astimezone():%F %T}"
