"""Re-exports: task states."""

from horsies.states import (
    TASK_TERMINAL_STATES,
    TaskAttemptOutcome,
    TaskStatus,
)

__all__ = [
    "TASK_TERMINAL_STATES",
    "TaskAttemptOutcome",
    "TaskStatus",
]
