"""The hooks of an app: functions and coroutine functions that are told of events.

A hook that raises is logged and changes nothing.
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeAlias, TypeVar, get_args, overload

from horsies.errors import ConfigurationError
from horsies.observability.events import (
    CancelledEvent,
    EnqueuedEvent,
    EventName,
    ExpiredEvent,
    FailedEvent,
    RetriedEvent,
    StartedEvent,
    SucceededEvent,
    WorkerStartedEvent,
    WorkerStoppingEvent,
)

E = TypeVar("E")
Hook: TypeAlias = Callable[[E], object]  # a function or a coroutine function
HookDecorator: TypeAlias = Callable[[Hook[E]], Hook[E]]
_logger = logging.getLogger("horsies.hooks")


class EventHooks:
    """`app.on`: registers hooks, and knows them."""

    def __init__(self) -> None:
        self._hooks: dict[str, list[Hook[Any]]] = {}

    @overload
    def __call__(self, event: Literal["enqueued"]) -> HookDecorator[EnqueuedEvent]: ...
    @overload
    def __call__(self, event: Literal["started"]) -> HookDecorator[StartedEvent]: ...
    @overload
    def __call__(self, event: Literal["succeeded"]) -> HookDecorator[SucceededEvent]: ...
    @overload
    def __call__(self, event: Literal["failed"]) -> HookDecorator[FailedEvent]: ...
    @overload
    def __call__(self, event: Literal["retried"]) -> HookDecorator[RetriedEvent]: ...
    @overload
    def __call__(self, event: Literal["cancelled"]) -> HookDecorator[CancelledEvent]: ...
    @overload
    def __call__(self, event: Literal["expired"]) -> HookDecorator[ExpiredEvent]: ...
    @overload
    def __call__(self, event: Literal["worker_started"]) -> HookDecorator[WorkerStartedEvent]: ...
    @overload
    def __call__(self, event: Literal["worker_stopping"]) -> HookDecorator[WorkerStoppingEvent]: ...
    def __call__(self, event: EventName) -> HookDecorator[Any]:
        """Have a function called with each such event: `@app.on("failed")`."""
        known = get_args(EventName)
        if event not in known:
            raise ConfigurationError(
                f"there is no event {event!r}",
                notes=[f"events: {', '.join(known)}"],
                help_text='@app.on("failed")\ndef tell(event: FailedEvent) -> None: ...',
            )

        def register(hook: Hook[Any]) -> Hook[Any]:
            if not callable(hook):
                raise ConfigurationError(
                    f"a hook must be a function, not {type(hook).__name__}",
                    help_text=f'@app.on("{event}")\ndef tell(event) -> None: ...',
                )
            self._hooks.setdefault(event, []).append(hook)
            return hook

        return register

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._hooks)

    def of(self, event: EventName) -> list[Hook[Any]]:
        return self._hooks.get(event, [])

    def tell(self, name: EventName, event: object) -> None:
        """Call the hooks of this event, in the order of their registration."""
        for hook in self.of(name):
            tell_hook(hook, name, event, run_to_end)

    async def tell_async(self, name: EventName, event: object) -> None:
        """The awaitable twin of `tell`."""
        for hook in self.of(name):
            try:
                result = hook(event)
                if inspect.isawaitable(result):
                    await result
            except Exception:  # user code: hooks
                _logger.exception("a hook for %r raised; it changes nothing", name)


def tell_hook(
    hook: Hook[Any], name: str, event: object, run: Callable[[Coroutine[Any, Any, object]], object]
) -> None:
    """Call one hook; `run` runs it to its end if it is a coroutine function."""
    try:
        result = hook(event)
        if inspect.iscoroutine(result):
            run(result)
    except (Exception, SystemExit):  # user code: hooks; an exit would end the thread of all hooks
        _logger.exception("a hook for %r raised; it changes nothing", name)


def run_to_end(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine of a caller that cannot await it, whether or not a loop runs here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(coroutine)
        return
    thread = threading.Thread(target=asyncio.run, args=[coroutine], name="horsies-hook")
    thread.start()
    thread.join()
