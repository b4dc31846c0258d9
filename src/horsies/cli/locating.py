"""The arguments that tell a command which app to use."""

import functools
from collections.abc import Callable

import click


def takes_app(function: Callable[..., object]) -> Callable[..., object]:
    """Add MODULE and -m/--module to a command, which gets `locator`; --module wins."""

    @click.argument("module", required=False)
    @click.option(
        "-m", "--module", "module_option", help="The app: shop.queue:app or shop/queue.py:app."
    )
    @functools.wraps(function)
    def command(module: str | None, module_option: str | None, **rest: object) -> object:
        return function(locator=module_option or module, **rest)

    return command
