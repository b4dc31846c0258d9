"""`horsies why`: every rule that holds a task back, in plain sentences."""

import click
from rich.padding import Padding
from rich.text import Text

from horsies.app import Horsies
from horsies.cli.console import make_console
from horsies.cli.operating import MODULE, as_json, find_app, print_json, value_of
from horsies.drawing.workflow_text import status_text


@click.command("why")
@click.argument("words", nargs=-1, required=True, metavar="[MODULE] ID")
@MODULE
@as_json
def command(words: tuple[str, ...], module: str | None, *, is_json: bool) -> None:
    """Explain why a task does not run, or what became of it.

    ID may be the beginning of an id, or WORKFLOW_ID/NODE_ID for a node that has no task yet.
    """
    *places, asked = words
    if len(places) > (module is None):
        raise click.UsageError(f"one task at a time, not {' '.join(words)}")
    app: Horsies = find_app(module or next(iter(places), None))
    explanation = value_of(app.operations.why(asked))
    if is_json:
        print_json(explanation)
        return
    console = make_console()
    title = (explanation.task_name, "bold"), f"  {explanation.task_id}  "
    console.print(Text.assemble(*title, status_text(explanation.status)), soft_wrap=True)
    for reason in explanation.reasons:
        console.print(Padding(Text(reason.text), (0, 0, 0, 2), expand=False))
        if reason.cure is not None:
            cure = Text.assemble(("→ ", "green"), (reason.cure, "dim"))
            console.print(Padding(cure, (0, 0, 0, 4), expand=False))
