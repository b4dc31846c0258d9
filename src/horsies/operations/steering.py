"""Steer workflows and run tasks again, each with its line in the audit."""

from typing import Any

from horsies.database.operation import Operation
from horsies.database.statement import Scalar
from horsies.operations.control import Note, record
from horsies.operations.requeue import rerun_one
from horsies.operations.steps import RefusedError, Steps


def steer_steps(
    name: str, workflow_id: str, operation: Operation[Scalar, Any], note: Note
) -> Steps[bool]:
    """Whether the workflow changed; one that does not exist is refused."""
    answer = operation.read((yield operation.statement))
    if answer is None:
        raise RefusedError(f"there is no workflow {workflow_id}")
    if answer == "no_node":
        raise RefusedError(f"workflow {workflow_id} has no such node")
    is_changed = answer in (True, "retried")
    yield record(note, name, f"workflow {workflow_id}", {"changed": is_changed})
    return is_changed


def rerun_steps(task_id: str, note: Note) -> Steps[str]:
    """The id of a new task with the input of an ended one."""
    operation = rerun_one(task_id, None)
    new_id = operation.read((yield operation.statement))
    if new_id is None:
        raise RefusedError(
            f"there is no ended task {task_id} to run again; nodes run again with their workflow"
        )
    yield record(note, "rerun", f"tasks {task_id}", {"new_task": new_id})
    return new_id
