"""A stored workflow as people look at it: states, progress, waits and failures; no results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.database.operation import Operation
from horsies.database.statement import Statement
from horsies.result import Err, Ok
from horsies.result.broker import BrokerResult
from horsies.workflows.mermaid import DrawnNode, draw_mermaid
from horsies.workflows.statements import (
    FailureRow,
    OverviewNode,
    OverviewWorkflow,
    failures_in_tree,
    overview_nodes,
    overview_workflows,
)

Row = TypeVar("Row")

_MAX_DEPTH = 64  # workflows nest to a depth of 50


@dataclass(frozen=True, slots=True)
class WorkflowOverview:
    """A workflow with its nodes; of children that are not unfolded only the progress is known."""

    workflow: OverviewWorkflow
    nodes: list[OverviewNode] = field(default_factory=list[OverviewNode])
    children: Mapping[str, "WorkflowOverview"] = field(
        default_factory=dict[str, "WorkflowOverview"]
    )

    def to_mermaid(self) -> str:
        """The graph as a mermaid flowchart with the states of its nodes."""
        ids = {node.task_index: name_of(node) for node in self.nodes}
        return draw_mermaid(
            [
                DrawnNode(
                    node_id=name_of(node),
                    name=node.task_name,
                    kind=node.kind,
                    dependencies=[ids[index] for index in node.dependencies if index in ids],
                    join=node.join_type,
                    min_success=node.min_success,
                    status=node.status,
                )
                for node in self.nodes
            ]
        )


def name_of(node: OverviewNode | FailureRow) -> str:
    """The id of a node; rows written by hand may have none."""
    return node.node_id or str(node.task_index)


def read_overview(
    database: Database, workflow_id: str, *, deep: bool = False
) -> BrokerResult[WorkflowOverview | None]:
    """Read a workflow and the progress of its children; with `deep`, all below it as well.

    Two statements, or with `deep` two for each level.
    """
    workflows: dict[str, OverviewWorkflow] = {}
    nodes: dict[str, list[OverviewNode]] = {}
    level: Sequence[str] = [workflow_id]
    for depth in range(_MAX_DEPTH):
        found = _perform(database, overview_workflows(level))
        if isinstance(found, Err):
            return found
        workflows |= {row.id: row for row in found.ok_value}
        if not found.ok_value or (depth > 0 and not deep):
            break
        rows = _perform(database, overview_nodes(level))
        if isinstance(rows, Err):
            return rows
        for node in rows.ok_value:
            nodes.setdefault(node.workflow_id, []).append(node)
        level = [node.sub_workflow_id for node in rows.ok_value if node.sub_workflow_id]
        if not level:
            break
    return Ok(_assemble(workflow_id, workflows, nodes) if workflow_id in workflows else None)


def read_failures(workflow_id: str, limit: int) -> Operation[FailureRow, list[FailureRow]]:
    """What failed by itself in a workflow and below it, in the order of time."""
    return Operation(
        failures_in_tree(workflow_id, limit), list, BrokerErrorCode.MONITORING_QUERY_FAILED
    )


def _perform(database: Database, statement: Statement[Row]) -> BrokerResult[list[Row]]:
    return database.perform(Operation(statement, list, BrokerErrorCode.MONITORING_QUERY_FAILED))


def _assemble(
    workflow_id: str,
    workflows: Mapping[str, OverviewWorkflow],
    nodes: Mapping[str, list[OverviewNode]],
) -> WorkflowOverview:
    own = nodes.get(workflow_id, [])
    children = {
        child: _assemble(child, workflows, nodes)
        for node in own
        if (child := node.sub_workflow_id) is not None and child in workflows
    }
    return WorkflowOverview(workflows[workflow_id], own, children)
