"""`horsies doctor`: what is wrong with the database, and what cures it."""

import sys

import click
from rich.padding import Padding
from rich.text import Text

from horsies.app import Horsies
from horsies.cli.console import make_console
from horsies.cli.operating import as_json, print_json, read_age, takes_app, value_of


@click.command("doctor")
@takes_app
@click.option(
    "--patience",
    default="5m",
    show_default=True,
    metavar="AGE",
    help="How long a transaction may be open.",
)
@as_json
def command(app: Horsies, patience: str, *, is_json: bool) -> None:
    """Examine the database as a queue needs it; change nothing.

    Exits with 1 if something is wrong. Hints alone exit with 0.
    """
    findings = value_of(app.operations.doctor(patience=read_age("--patience", patience)))
    if is_json:
        print_json(findings)
    else:
        console = make_console()
        for finding in findings:
            mark = Text("✘ ", "red") if finding.is_wrong else Text("! ", "yellow")
            console.print(Text.assemble(mark, finding.text))
            cure = Text.assemble(("→ ", "green"), (finding.cure, "dim"))
            console.print(Padding(cure, (0, 0, 0, 4), expand=False))
        if not findings:
            console.print("✔ nothing wrong", style="green")
    sys.exit(1 if any(finding.is_wrong for finding in findings) else 0)
