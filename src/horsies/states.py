"""The states of tasks, attempts and workflows, and the transitions of tasks (docs/states.md)."""

from enum import Enum, StrEnum
from typing import Any, TypeVar

AnyStatus = TypeVar("AnyStatus", bound=Enum)


def read_status(kind: type[AnyStatus], stored: str) -> AnyStatus:
    """The state that a row has.

    One that this release does not know, of a newer one or written by hand, is shown as it is: a
    value of the enum beside its members, equal to none of them.
    """
    try:
        return kind(stored)
    except ValueError:
        make: Any = str.__new__ if str in kind.__mro__ else _make_plain
        unknown: AnyStatus = make(kind, stored)
        unknown._name_ = unknown._value_ = stored
        return unknown


def _make_plain(kind: type[AnyStatus], _stored: str) -> AnyStatus:
    return object.__new__(kind)


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
        return _DISPLAY_AND_NUMBER.get(self, (str(self.value), 0))[0]

    @property
    def numeric(self) -> int:
        """The state as a number: 0 is waiting, 1 is running, 2 and above are terminal."""
        return _DISPLAY_AND_NUMBER.get(self, (str(self.value), 0))[1]


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
