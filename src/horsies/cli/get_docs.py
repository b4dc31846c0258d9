"""`horsies get-docs`: write the documentation that ships with the package."""

import shutil
from pathlib import Path

import click

import horsies
from horsies.cli.printing import echo

_MARK = ".written-by-horsies"


@click.command("get-docs")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".horsies-docs"),
    show_default=True,
    help="The directory to write to.",
)
def command(output: Path) -> None:
    """Write the documentation of this version as Markdown files.

    Replaces a directory that an earlier run has written, but no other directory with files in it.
    """
    if output.exists() and any(output.iterdir()):
        if not (output / _MARK).exists():
            raise click.ClickException(
                f"{output} contains files that get-docs did not write; nothing was written.\n"
                "Choose a new directory with --output"
            )
        shutil.rmtree(output)
    shutil.copytree(_source(), output, dirs_exist_ok=True)
    (output / _MARK).write_text(f"horsies {horsies.__version__}\n")
    count = sum(1 for _ in output.rglob("*.md"))
    echo(f"Wrote {count} pages to {output}; start with {output / 'README.md'}")


def _source() -> Path:
    """Find the docs inside the installed package, or beside `src` in a working copy."""
    package = Path(horsies.__file__).parent
    shipped = package / "docs"
    return shipped if shipped.is_dir() else package.parents[1] / "docs"
