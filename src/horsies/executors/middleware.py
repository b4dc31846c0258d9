"""Functions around the execution of tasks: `@app.middleware`.

They are user code like the task itself: what they return is the result of the attempt, and what
they raise is its failure.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from horsies.errors import ConfigurationError
from horsies.executors.current import CurrentTask
from horsies.observability.traces import Tracing

PlainLayer: TypeAlias = Callable[[CurrentTask, Callable[[], Any]], Any]
AsyncLayer: TypeAlias = Callable[[CurrentTask, Callable[[], Awaitable[Any]]], Awaitable[Any]]
L = TypeVar("L", bound=PlainLayer | AsyncLayer)


class Middleware:
    """`app.middleware`: plain functions go around plain tasks, coroutine functions around async.

    The first one registered is the outermost.
    """

    def __init__(self) -> None:
        self.tracing: Tracing | None = None  # its spans go around all layers
        self.layers: list[PlainLayer] = []
        self.async_layers: list[AsyncLayer] = []

    def __call__(self, layer: L) -> L:
        """Register a function `(task, call_next)` that returns what `call_next()` does."""
        try:
            inspect.signature(layer).bind(None, None)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"middleware takes the task and the next call: {error}",
                help_text="@app.middleware\ndef timed(task, call_next):\n    return call_next()",
            ) from error
        layers: list[Any] = self.async_layers if inspect.iscoroutinefunction(layer) else self.layers
        layers.append(layer)
        return layer
