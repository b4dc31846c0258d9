"""`horsies init`: create a small project that runs at once."""

from importlib.resources import files
from pathlib import Path

import click

from horsies.cli.printing import echo


@click.command("init")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=Path())
def command(directory: Path) -> None:
    """Create a small project in DIRECTORY (default: here) without overwriting any file."""
    # The files end in .txt so that no tool takes them for modules of this package.
    templates = {
        template.name.removesuffix(".txt"): template.read_text()
        for template in files("horsies.cli").joinpath("project").iterdir()
    }
    if existing := [name for name in sorted(templates) if (directory / name).exists()]:
        raise click.ClickException(
            f"{', '.join(existing)} already in {directory.resolve()}; nothing was written.\n"
            "Choose a new directory, for example: horsies init my_project"
        )
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in templates.items():
        (directory / name).write_text(text.replace("PROJECT_NAME", _project_name(directory)))
    echo(f"Wrote {', '.join(sorted(templates))} to {directory.resolve()}")
    echo("\nIn one terminal:\n")
    _echo_commands(directory, "horsies worker app:app --reload")
    echo("\nIn another:\n")
    _echo_commands(directory, "python send.py")


def _echo_commands(directory: Path, command: str) -> None:
    if directory.resolve() != Path.cwd():
        echo(f"  cd {directory}")
    echo(f"  {command}")


def _project_name(directory: Path) -> str:
    letters = (letter if letter.isalnum() else "-" for letter in directory.resolve().name.lower())
    return "".join(letters).encode("ascii", "ignore").decode().strip("-") or "my-project"
