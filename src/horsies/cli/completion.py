"""`horsies completion`: complete commands and options in a shell."""

import os
from pathlib import Path

import click

from horsies.cli.printing import echo

# How each shell learns of the completion, and in which file of the home directory.
_SHELLS = {
    "bash": (".bashrc", 'eval "$(_HORSIES_COMPLETE=bash_source horsies)"'),
    "zsh": (".zshrc", 'eval "$(_HORSIES_COMPLETE=zsh_source horsies)"'),
    "fish": (
        ".config/fish/completions/horsies.fish",
        "_HORSIES_COMPLETE=fish_source horsies | source",
    ),
}


@click.command("completion")
@click.argument("shell", type=click.Choice(sorted(_SHELLS)), required=False)
@click.option("--print", "is_printed", is_flag=True, help="Print the line instead.")
def command(shell: str | None, *, is_printed: bool) -> None:
    """Install completion for SHELL, by default the one you use."""
    shell = shell or Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise click.UsageError(f"name your shell: {', '.join(sorted(_SHELLS))}")
    place, line = _SHELLS[shell]
    if is_printed:
        echo(line)
        return
    file = Path.home() / place
    text = file.read_text() if file.exists() else ""
    if line in text:
        echo(f"{file} has it already")
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as opened:
        opened.write(f"\n{line}\n" if text else f"{line}\n")
    echo(f"added to {file}; it works in every new {shell}")
