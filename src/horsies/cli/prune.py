"""`horsies prune`: delete old ended tasks now, not at the next pass of the reaper."""

import click

from horsies.app import Horsies
from horsies.cli.asking import confirm, takes_yes
from horsies.cli.operating import read_age, takes_app, value_of
from horsies.cli.printing import echo
from horsies.operations.filters import ENDED


@click.command("prune")
@takes_app
@click.option("--older-than", required=True, metavar="AGE", help="What ended before: 7d, 12h.")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(ENDED, case_sensitive=False),
    help="Only tasks in this state; may be given more than once.",
)
@click.option("--dry-run", is_flag=True, help="Only count.")
@takes_yes
def command(
    app: Horsies, older_than: str, statuses: tuple[str, ...], *, dry_run: bool, yes: bool
) -> None:
    """Delete ended tasks with their attempts and output. Running workflows keep theirs."""
    age = read_age("--older-than", older_than)
    count = value_of(app.operations.prune(age, statuses=statuses or ENDED, dry_run=True))
    echo(f"{count} task(s) ended more than {older_than} ago")
    if dry_run or count.number == 0:
        return
    confirm("Delete them?", yes=yes)
    deleted = value_of(app.operations.prune(age, statuses=statuses or ENDED))
    echo(f"{deleted} task(s) deleted")
