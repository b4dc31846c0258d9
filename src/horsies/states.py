"""The states of tasks, attempts and workflows, and the transitions of tasks (docs/states.md)."""

from enum import Enum, StrEnum


class TaskStatus(Enum):
    """The state of a task; the value is the text in its row."""

    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"

    @property
    def is_terminal(self) -> bool:
        """Whether no automatic transition leaves this state."""
        return self in TASK_TERMINAL_STATES

    @property
    def display(self) -> str:
        """The name of the state for display."""
        return _DISPLAY_AND_NUMBER[self][0]

    @property
    def numeric(self) -> int:
        """The state as a number: 0 is waiting, 1 is running, 2 and above are terminal."""
        return _DISPLAY_AND_NUMBER[self][1]


class TaskAttemptOutcome(StrEnum):
    """How one attempt ended."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    WORKER_FAILURE = "WORKER_FAILURE"


_DISPLAY_AND_NUMBER = {
    TaskStatus.PENDING: ("Queued", 0),
    TaskStatus.CLAIMED: ("Claimed", 0),
    TaskStatus.RUNNING: ("In progress", 1),
    TaskStatus.COMPLETED: ("Completed", 2),
    TaskStatus.FAILED: ("Failed", 3),
    TaskStatus.CANCELLED: ("Cancelled", 4),
    TaskStatus.EXPIRED: ("Expired", 5),
}

TASK_TERMINAL_STATES: frozenset[TaskStatus] = frozenset(
    {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.EXPIRED}
)

# From → to. CLAIMED → CLAIMED is a takeover after the lease has expired. PENDING → RUNNING is claim
# and start in one statement. Only the user's explicit requeue leaves a terminal state.
TASK_TRANSITIONS: dict[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.PENDING: frozenset(
        {TaskStatus.CLAIMED, TaskStatus.RUNNING, TaskStatus.EXPIRED, TaskStatus.CANCELLED}
    ),
    TaskStatus.CLAIMED: frozenset(
        {
            TaskStatus.CLAIMED,
            TaskStatus.RUNNING,
            TaskStatus.PENDING,
            TaskStatus.EXPIRED,
            TaskStatus.CANCELLED,
        }
    ),
    TaskStatus.RUNNING: frozenset(
        {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.PENDING, TaskStatus.CANCELLED}
    ),
    TaskStatus.COMPLETED: frozenset({TaskStatus.PENDING}),
    TaskStatus.FAILED: frozenset({TaskStatus.PENDING}),
    TaskStatus.CANCELLED: frozenset({TaskStatus.PENDING}),
    TaskStatus.EXPIRED: frozenset(),
}


class WorkflowStatus(StrEnum):
    """The state of a workflow."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    PAUSED = "PAUSED"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        """Whether the workflow has ended."""
        return self in WORKFLOW_TERMINAL_STATES


class WorkflowTaskStatus(StrEnum):
    """The state of one node of a workflow."""

    PENDING = "PENDING"
    READY = "READY"
    ENQUEUED = "ENQUEUED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"

    @property
    def is_terminal(self) -> bool:
        """Whether the node has ended."""
        return self in WORKFLOW_TASK_TERMINAL_STATES


WORKFLOW_TERMINAL_STATES: frozenset[WorkflowStatus] = frozenset(
    {WorkflowStatus.COMPLETED, WorkflowStatus.FAILED, WorkflowStatus.CANCELLED}
)
WORKFLOW_TASK_TERMINAL_STATES: frozenset[WorkflowTaskStatus] = frozenset(
    {WorkflowTaskStatus.COMPLETED, WorkflowTaskStatus.FAILED, WorkflowTaskStatus.SKIPPED}
)
