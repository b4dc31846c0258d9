"""Callables for django-simple-queue, one per behaviour under test."""

import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

from horsies import Secret

_logger = logging.getLogger("shop")


def add(a: int, b: int) -> str:
    return str(a + b)


def charge(order: int, card: Annotated[str, Secret]) -> Annotated[str, Secret]:
    return f"receipt of {card}, order {order}"


def nothing() -> None:
    """Neither takes nor gives anything."""


def give(value: Any) -> Any:
    return value


async def give_async(value: Any) -> Any:
    return value


def count(to: int) -> Iterator[str]:
    for number in range(to):
        yield f"{number};"


async def count_async(to: int) -> AsyncIterator[str]:
    for number in range(to):
        yield f"{number};"


def count_then_fail(to: int) -> Iterator[str]:
    yield from count(to)
    raise ValueError("enough")


def count_then_wait(to: int, seconds: float) -> Iterator[str]:
    yield from count(to)
    time.sleep(seconds)
    yield "end"


def fail(x: int = 0) -> None:
    raise ValueError("Something went wrong")


def leave(code: int) -> None:
    os._exit(code)


def chatter(lines: int) -> str:
    """Write a lot."""
    for number in range(lines):
        print(f"line {number}")
    return "spoken"


def talk(seconds: float = 0) -> str:
    """Write in every way there is."""
    print("by print")
    print("by stderr", file=sys.stderr)
    _logger.debug("by logging")
    os.write(1, b"by descriptor\n")
    time.sleep(seconds)
    return "spoken"


def sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"
