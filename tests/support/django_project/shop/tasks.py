"""Tasks for Django's Tasks framework, one per behaviour under test."""

import asyncio
import os
import signal
import sys
import time
from typing import Annotated, Any

from django.db import connection

import django
from support.django_project.shop.models import Note

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task

from horsies import Secret
from horsies.contrib.django import task as our_task


def note(text: str) -> None:
    Note.objects.create(text=text, pid=os.getpid())


@task
def add(a: int, b: int) -> int:
    return a + b


@task
def charge(order: int, card: Annotated[str, Secret]) -> Annotated[str, Secret]:
    return f"receipt of {card}"


@task
def write(text: str) -> str:
    note(text)
    return text


@task
def count_queries() -> int:
    """How many queries this process remembers, with DEBUG=True."""
    return len(connection.queries)


@task
async def write_async(text: str) -> str:
    await Note.objects.acreate(text=text)
    await asyncio.sleep(0)
    return text


@task(takes_context=True)
def tell_attempt(context: Any, text: str) -> int:
    note(f"{text} {context.attempt}")
    return context.attempt


@task
def fail(text: str) -> None:
    raise ValueError(text)


@our_task(max_retries=2)
def fail_always(text: str) -> None:
    note(text)
    raise ValueError(text)


@our_task(max_retries=1, takes_context=True)
def fail_once(context: Any) -> int:
    if context.attempt == 1:
        raise ValueError("the first time")
    return context.attempt


@task
def give_function() -> Any:
    return lambda: None


@task
def leave() -> None:
    sys.exit(3)


@task
def interrupt() -> None:
    raise KeyboardInterrupt


@task
def take(seconds: float, text: str = "") -> str:
    """Say when it has begun, and when it has ended."""
    note(f"begun {text}")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(0.02)
    note(f"ended {text}")
    return text


@our_task(max_retries=1)
def take_retried(seconds: float, text: str) -> str:
    return str(take.func(seconds, text))


@task
def ignore_the_wish(seconds: float) -> None:
    """Go on although it was asked to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("begun stubborn")
    time.sleep(seconds)


@task(takes_context=True)
def cancel_this_row(context: Any) -> str:
    """As if an operator's cancellation had been written while it runs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "update horsies_tasks set status = 'CANCELLED' where id = %s",
            [context.task_result.id],
        )
    note("about to succeed")
    return "late"


@task
def hold(seconds: float, text: str) -> str:
    """Say when it has begun, and do without the database afterwards."""
    note(f"held {text}")
    time.sleep(seconds)
    return text


@our_task(timeout=1)
def ignore_the_end(seconds: float) -> None:
    """Catch whatever is thrown at it to end it."""
    note("ignoring")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(seconds)


@our_task(timeout=1)
def take_too_long() -> None:
    """Say so when it is asked to end."""
    try:
        time.sleep(60)
    finally:
        note("asked to end")


@task
def die() -> None:
    """End the process without a word."""
    os._exit(3)


if django.VERSION >= (6, 1):

    @task(max_retries=2)
    def fail_by_django(text: str) -> None:
        raise ValueError(text)


not_a_task = str.upper
