"""Pure values between worker and database: a claimed task.

And the completion that ends its attempt.
"""

from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

# T6; T7 or T8; T16; T17.
Ending: TypeAlias = Literal["complete", "fail", "cancel", "interrupt"]


class ClaimedTask(NamedTuple):
    """A task this worker owns.

    `claim` is `claimed_at` as the fence carries it; started when it has a pid.
    """

    id: str
    task_name: str
    queue_name: str
    priority: int
    args: str | None
    kwargs: str | None
    attempt: int
    claim: str
    enqueued_at: datetime
    task_options: str | None
    is_workflow_task: bool
    lane: int
    worker_pid: int | None


class Completion(NamedTuple):
    """The end of one attempt, ready to be written.

    Without `attempt_outcome` it is a success (T6).
    """

    task: ClaimedTask
    result: str
    way: Ending = "complete"
    attempt_outcome: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    failed_reason: str | None = None
    retry_delay_s: float | None = None
    log: str | None = None
    log_truncated: bool = False

    @property
    def size(self) -> int:
        """About how many bytes are held until it is written."""
        given = len(self.task.args or "") + len(self.task.kwargs or "")
        return len(self.result) + len(self.log or "") + given + 200
