"""Find stored workflows: a page of them by filter, or one by the beginning of its id."""

from collections.abc import Sequence
from dataclasses import dataclass

from horsies.codes import BrokerErrorCode
from horsies.database.operation import Operation
from horsies.states import WorkflowStatus
from horsies.workflows import statements
from horsies.workflows.statements import FoundId, ListedWorkflow


@dataclass(frozen=True, slots=True)
class WorkflowFilter:
    """Workflows in these states (none given: in any) and of this name."""

    statuses: Sequence[WorkflowStatus] = ()
    name: str | None = None


@dataclass(frozen=True, slots=True)
class WorkflowPage:
    """The newest workflows first; the next page goes on `before` this id."""

    workflows: list[ListedWorkflow]
    next_before: str | None


def list_workflows(
    wanted: WorkflowFilter, *, limit: int = 20, before: str | None = None
) -> Operation[ListedWorkflow, WorkflowPage]:
    """A page of the workflows that were started by themselves, not by another workflow."""

    def read(rows: list[ListedWorkflow]) -> WorkflowPage:
        page = rows[:limit]
        return WorkflowPage(page, page[-1].id if len(rows) > limit else None)

    statuses = [status.value for status in wanted.statuses] or None
    statement = statements.list_workflows(statuses, wanted.name, before, limit + 1)
    return Operation(statement, read, BrokerErrorCode.MONITORING_QUERY_FAILED)


def find_workflow(prefix: str) -> Operation[FoundId, list[str]]:
    """The ids that begin like this: one if it is a whole id, or if one workflow fits.

    Nodes that became workflows count only where nothing else fits.
    """

    def read(rows: list[FoundId]) -> list[str]:
        if any(row.id == prefix for row in rows):
            return [prefix]
        return [row.id for row in rows if row.is_root] or [row.id for row in rows]

    return Operation(
        statements.workflows_with_prefix(prefix), read, BrokerErrorCode.MONITORING_QUERY_FAILED
    )
