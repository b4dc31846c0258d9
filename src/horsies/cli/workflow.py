"""`horsies workflow`: list, show, pause, resume, cancel and retry workflows."""

import functools
import json
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

import click

from horsies.cli.console import make_console
from horsies.cli.locating import takes_app
from horsies.cli.operating import takes_note, value_of
from horsies.cli.printing import echo
from horsies.cli.workflow_view import print_list, print_workflow
from horsies.drawing.workflow_text import progress
from horsies.locator import load_app
from horsies.operations.control import Note
from horsies.operations.operations import Operations
from horsies.result.broker import BrokerResult
from horsies.states import WorkflowStatus
from horsies.workflows.listing import WorkflowFilter
from horsies.workflows.overview import WorkflowOverview, name_of

_FAILURES_READ = 11


class _Found(NamedTuple):
    """The workflow that a command line names."""

    operations: Operations
    locator: str
    workflow_id: str


@click.group("workflow")
def command() -> None:
    """See and steer the workflows of an app.

    \b
    Example:  horsies workflow list shop:app
              horsies workflow show shop:app 0193e1

    MODULE names the app; -m shop:app does so too. ID may be the beginning of an id.
    """


def _takes_workflow(function: Callable[..., object]) -> Callable[..., object]:
    """Add [MODULE] ID and -m/--module; the command gets what they name."""

    @click.argument("words", nargs=-1, required=True, metavar="[MODULE] ID")
    @click.option("-m", "--module", help="The app: shop.queue:app or shop/queue.py:app.")
    @functools.wraps(function)
    def with_workflow(words: tuple[str, ...], module: str | None, **rest: object) -> object:
        match words:
            case (locator, workflow_id):
                locator = module or locator
            case (workflow_id,) if module is not None:
                locator = module
            case _:
                raise click.UsageError("name the app and the workflow: MODULE ID, or -m MODULE ID")
        operations = load_app(locator).operations
        whole_id = value_of(operations.find_workflow(workflow_id))
        return function(found=_Found(operations, locator, whole_id), **rest)

    return with_workflow


@command.command("list")
@takes_app
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice([status.value for status in WorkflowStatus], case_sensitive=False),
    help="Only workflows in this state; may be given more than once.",
)
@click.option("--name", help="Only workflows of this name.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--before", metavar="ID", help="Go on behind this id, where the last page ended.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON for programs.")
def list_command(
    locator: str | None,
    statuses: tuple[str, ...],
    name: str | None,
    limit: int,
    before: str | None,
    *,
    is_json: bool,
) -> None:
    """List workflows, newest first."""
    wanted = WorkflowFilter([WorkflowStatus(status) for status in statuses], name)
    page = value_of(load_app(locator).operations.workflows(wanted, limit=limit, before=before))
    if is_json:
        rows = [row._asdict() for row in page.workflows]
        _print_json({"workflows": rows, "next_before": page.next_before})
    else:
        print_list(make_console(), page)


@command.command()
@_takes_workflow
@click.option("--deep", is_flag=True, help="Unfold sub-workflows and fan-outs.")
@click.option("--all", "is_whole", is_flag=True, help="Leave out nothing of a long graph.")
@click.option("--mermaid", "is_mermaid", is_flag=True, help="Print the graph as mermaid text.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON for programs.")
def show(
    found: _Found,
    *,
    deep: bool,
    is_whole: bool,
    is_mermaid: bool,
    is_json: bool,
) -> None:
    """Draw a workflow with the state of each node, its errors and waits."""
    overview = _overview(found, deep=deep)
    if is_mermaid:
        echo(overview.to_mermaid(), nl=False)
    elif is_json:
        _print_json(_as_json(overview))
    else:
        failures = value_of(
            found.operations.workflow_failures(found.workflow_id, limit=_FAILURES_READ)
        )
        print_workflow(make_console(), overview, failures, found.locator, is_whole=is_whole)


@command.command()
@_takes_workflow
@takes_note
def pause(found: _Found, note: Note) -> None:
    """Let running tasks finish and start nothing more.

    Exits with 1 if the workflow was not running.
    """
    _steer(found, found.operations.pause_workflow(found.workflow_id, note=note), "paused")


@command.command()
@_takes_workflow
@takes_note
def resume(found: _Found, note: Note) -> None:
    """Let a paused workflow go on.

    Exits with 1 if the workflow was not paused.
    """
    _steer(found, found.operations.resume_workflow(found.workflow_id, note=note), "resumed")


@command.command()
@_takes_workflow
@takes_note
def cancel(found: _Found, note: Note) -> None:
    """Start nothing more of a workflow, for good; running tasks finish.

    Exits with 1 if the workflow had ended.
    """
    _steer(found, found.operations.cancel_workflow(found.workflow_id, note=note), "cancelled")


@command.command()
@_takes_workflow
@takes_note
@click.option(
    "--from", "from_node", metavar="NODE_ID", help="Run this node and all behind it again."
)
def retry(found: _Found, from_node: str | None, note: Note) -> None:
    """Run the failed nodes of a workflow again, and what was skipped behind them.

    Results of completed nodes are kept. Exits with 1 if nothing was retried.
    """
    overview = _overview(found)
    if from_node is not None and from_node not in map(name_of, overview.nodes):
        _refuse(f"not retried: workflow {overview.workflow.name} has no node {from_node}")
    operations = found.operations
    if value_of(operations.retry_workflow(found.workflow_id, from_node=from_node, note=note)):
        _report(found, "retried")
        return
    workflow = _overview(found).workflow
    if workflow.parent_workflow_id is not None:
        root = workflow.root_workflow_id or workflow.parent_workflow_id
        _refuse(f"not retried: it is a part of workflow {root}; retry that one")
    cure = "; name a node with --from" if workflow.status == "COMPLETED" else ""
    _refuse(f"not retried: the workflow is {workflow.status}{cure}")


def _overview(found: _Found, *, deep: bool = False) -> WorkflowOverview:
    overview = value_of(found.operations.workflow(found.workflow_id, deep=deep))
    if overview is None:
        raise click.ClickException(f"there is no workflow {found.workflow_id} any more")
    return overview


def _steer(found: _Found, answer: BrokerResult[bool], done: str) -> None:
    if value_of(answer):
        _report(found, done)
        return
    status = _overview(found).workflow.status
    _refuse(f"not {done}: the workflow is {status}")


def _report(found: _Found, done: str) -> None:
    workflow = _overview(found).workflow
    echo(f"{done}: {workflow.name} {workflow.id}")
    echo(f"now {workflow.status}, {progress(workflow)}")


def _refuse(message: str) -> NoReturn:
    echo(message, err=True)
    sys.exit(1)


def _as_json(overview: WorkflowOverview) -> dict[str, Any]:
    return {
        **overview.workflow._asdict(),
        "nodes": [node._asdict() for node in overview.nodes],
        "children": {key: _as_json(child) for key, child in overview.children.items()},
    }


def _print_json(value: object) -> None:
    echo(json.dumps(value, indent=2, ensure_ascii=False, default=_json_default))


def _json_default(value: object) -> str:
    assert isinstance(value, datetime), value
    return value.isoformat()
