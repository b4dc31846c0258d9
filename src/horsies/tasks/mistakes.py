"""Collect wrong task definitions while modules are imported, so that one run shows all of them.

Outside of `collected_mistakes` a wrong definition raises at once.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from horsies.errors import HorsiesError

# A context variable: an app module is imported before there is an app that could carry the list.
_found: ContextVar[list[HorsiesError] | None] = ContextVar("horsies_mistakes", default=None)


@contextmanager
def collected_mistakes() -> Generator[list[HorsiesError], None, None]:
    """Collect the mistakes of the definitions inside the block instead of raising them."""
    found: list[HorsiesError] = []
    token = _found.set(found)
    try:
        yield found
    finally:
        _found.reset(token)


def keep_mistake(error: HorsiesError) -> None:
    """Keep the error for the report if mistakes are collected; else raise it."""
    found = _found.get()
    if found is None:
        raise error
    found.append(error)


def refused_task(error: HorsiesError) -> "RefusedTask":
    """Stand in for a task that was refused, if mistakes are collected; else raise."""
    keep_mistake(error)
    return RefusedTask(error)


def unique(errors: list[HorsiesError]) -> list[HorsiesError]:
    """Each error once: the use of a refused task raises the error that is already known."""
    return list({id(error): error for error in errors}.values())


class RefusedTask:
    """What a module holds instead of a task that was refused: any use raises the mistake."""

    def __init__(self, error: HorsiesError) -> None:
        self.__error = error

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.__error

    def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise self.__error
