"""Show the task's own signature and docstring where people look: `help(task.send)`, editors."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

_SENDS = ("send", "send_async", "send_or_raise", "send_or_raise_async", "bind")
_DELAYED = ("schedule", "schedule_async")
_DELAY = inspect.Parameter("delay", inspect.Parameter.POSITIONAL_ONLY, annotation=int)


def show_signature(task: object, sender: object, function: Callable[..., object]) -> None:
    """Give the sending methods of one task the parameters of its function.

    What a method does is documented at `sender`, to which the task leaves it.
    """
    shown = inspect.signature(function)
    for name in _SENDS:
        _replace(task, name, function, shown, getattr(sender, name, None))
    # A parameter after another by position only must not come before it by position only.
    delayed = shown.replace(parameters=[_DELAY, *shown.parameters.values()])
    for name in _DELAYED:
        _replace(task, name, function, delayed, getattr(sender, name, None))


def _replace(
    task: object,
    name: str,
    function: Callable[..., object],
    shown: inspect.Signature,
    documented: object,
) -> None:
    method = getattr(task, name)
    own: Callable[..., Any]
    if inspect.iscoroutinefunction(method):

        async def own_async(*args: Any, **kwargs: Any) -> Any:
            return await method(*args, **kwargs)

        own = own_async
    else:

        def own_blocking(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

        own = own_blocking
    functools.update_wrapper(own, method, assigned=("__module__", "__name__", "__qualname__"))
    returns = inspect.signature(method).return_annotation
    vars(own)["__signature__"] = shown.replace(return_annotation=returns)
    first = inspect.getdoc(documented or method)
    own.__doc__ = "\n\n".join(filter(None, (first, inspect.getdoc(function))))
    vars(task)[name] = own
