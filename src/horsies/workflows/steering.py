"""Pause, resume, cancel and retry stored workflows, for command lines and dashboards.

Each answers whether it changed anything, and None when there is no such workflow.
"""

from typing import Literal, TypeAlias

from horsies.codes import BrokerErrorCode
from horsies.database.operation import Operation
from horsies.database.statement import Scalar, Statement
from horsies.workflows import statements

RetryOutcome: TypeAlias = Literal["retried", "refused", "no_node"]


def pause(workflow_id: str) -> Operation[Scalar, bool | None]:
    return _changed(statements.pause_workflow(workflow_id))


def resume(workflow_id: str) -> Operation[Scalar, bool | None]:
    return _changed(statements.resume_workflow(workflow_id))


def cancel(workflow_id: str) -> Operation[Scalar, bool | None]:
    return _changed(statements.cancel_workflow(workflow_id))


def retry(workflow_id: str, from_node: str | None) -> Operation[Scalar, RetryOutcome | None]:
    """Run what failed again, or a node and all behind it."""
    return Operation(
        statements.retry_workflow(workflow_id, from_node),
        lambda rows: rows[0].value,
        BrokerErrorCode.MONITORING_QUERY_FAILED,
    )


def _changed(statement: Statement[Scalar]) -> Operation[Scalar, bool | None]:
    return Operation(statement, lambda rows: rows[0].value, BrokerErrorCode.MONITORING_QUERY_FAILED)
