"""What can be done to a workflow, in the list and in its detail: each asks first."""

from horsies.operations.operations import Operations
from horsies.tui.task_actions import Change
from horsies.tui.view import NOTE


class WorkflowActions:
    """Pause, resume and cancel."""

    def __init__(self, operations: Operations, change: Change) -> None:
        self._operations = operations
        self._change = change

    def steer(self, workflow_id: str, name: str, status: str) -> None:
        """Resume what is paused, pause what is not."""
        if status == "PAUSED":
            self._change(
                f"Resume workflow {name}?\n{workflow_id}",
                lambda: self._operations.resume_workflow_async(workflow_id, note=NOTE),
                lambda done: f"{name} goes on" if done else f"{name} was not paused",
            )
        else:
            self._change(
                f"Pause workflow {name}? Running tasks finish, nothing starts.\n{workflow_id}",
                lambda: self._operations.pause_workflow_async(workflow_id, note=NOTE),
                lambda done: f"{name} is paused" if done else f"{name} was not running",
            )

    def cancel(self, workflow_id: str, name: str) -> None:
        self._change(
            f"Cancel workflow {name}? Nothing of it starts any more, for good.\n{workflow_id}",
            lambda: self._operations.cancel_workflow_async(workflow_id, note=NOTE),
            lambda done: f"{name} is cancelled" if done else f"{name} had ended",
        )
