"""Tells the hooks for "enqueued" of tasks that this process has stored."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from horsies.observability.events import EnqueuedEvent
from horsies.observability.hooks import EventHooks
from horsies.result import Ok, Result


class ToldSend(Protocol):
    """What was sent."""

    @property
    def task_name(self) -> str: ...
    @property
    def queue_name(self) -> str: ...


class SentTask(Protocol):
    """A handle on a stored task; `created` says whether this very send stored it."""

    @property
    def task_id(self) -> str: ...
    @property
    def created(self) -> bool: ...


def tell_enqueued(
    hooks: EventHooks, sent: ToldSend, result: Result[Any, Any], *, is_in_transaction: bool = False
) -> None:
    """Tell of each new task of a send that has succeeded; costs a look without hooks."""
    if hooks.of("enqueued") and isinstance(result, Ok):
        for event in _events(sent, result.ok_value, is_in_transaction=is_in_transaction):
            hooks.tell("enqueued", event)


async def tell_enqueued_async(
    hooks: EventHooks, sent: ToldSend, result: Result[Any, Any], *, is_in_transaction: bool = False
) -> None:
    """The awaitable twin of `tell_enqueued`."""
    if hooks.of("enqueued") and isinstance(result, Ok):
        for event in _events(sent, result.ok_value, is_in_transaction=is_in_transaction):
            await hooks.tell_async("enqueued", event)


def _events(
    sent: ToldSend, stored: SentTask | Iterable[SentTask], *, is_in_transaction: bool
) -> Iterator[EnqueuedEvent]:
    handles = stored if isinstance(stored, Iterable) else [stored]
    for handle in handles:
        if handle.created:
            yield EnqueuedEvent(handle.task_id, sent.task_name, sent.queue_name, is_in_transaction)
