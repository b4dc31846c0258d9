"""How a command asks before it changes much, and what it says where nobody can answer."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from horsies.cli.printing import echo

C = TypeVar("C", bound=Callable[..., Any])


def takes_yes(command: C) -> C:
    """Give a command the option that answers its question beforehand."""
    return click.option("--yes", is_flag=True, help="Do not ask for confirmation.")(command)


def confirm(question: str, *, yes: bool) -> None:
    """Return if the answer is yes, given by `--yes` or by a person; else end the command."""
    if yes:
        return
    try:
        click.confirm(question, abort=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            echo()
            raise click.ClickException("nobody is there to answer; add --yes") from None
        raise
