"""How commands print lines. What is stored was written by others: it is shown, and never acts."""

import click

from horsies.visible import visible


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text; nothing in it acts on the terminal."""
    click.echo(visible(text), err=err, nl=nl)
