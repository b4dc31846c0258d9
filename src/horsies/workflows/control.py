"""Pause and resume a workflow by its id, on any broker."""

from typing import Any

from horsies.workflows.errors import HandleResult
from horsies.workflows.handle import HandleBroker, WorkflowHandle


async def pause_workflow(broker: HandleBroker, workflow_id: str) -> HandleResult[bool]:
    """Pause a workflow by its id; `pause_workflow_sync` is the blocking form."""
    return await WorkflowHandle[Any](workflow_id, broker).pause_async()


def pause_workflow_sync(broker: HandleBroker, workflow_id: str) -> HandleResult[bool]:
    return WorkflowHandle[Any](workflow_id, broker).pause()


async def resume_workflow(broker: HandleBroker, workflow_id: str) -> HandleResult[bool]:
    """Resume a workflow by its id; `resume_workflow_sync` is the blocking form."""
    return await WorkflowHandle[Any](workflow_id, broker).resume_async()


def resume_workflow_sync(broker: HandleBroker, workflow_id: str) -> HandleResult[bool]:
    return WorkflowHandle[Any](workflow_id, broker).resume()
