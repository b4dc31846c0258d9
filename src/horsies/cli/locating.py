"""How commands are told which app they are about."""

import functools
from collections.abc import Callable
from typing import Any

import click


def takes_app(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command MODULE and -m/--module, which wins; it gets the choice as `locator`."""

    @click.argument("module", required=False)
    @click.option(
        "-m", "--module", "module_option", help="The app: shop.queue:app or shop/queue.py:app."
    )
    @functools.wraps(function)
    def command(module: str | None, module_option: str | None, **rest: Any) -> Any:
        return function(locator=module_option or module, **rest)

    return command
