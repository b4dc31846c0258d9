"""A task on its way through a worker: one record from its claim to its recorded end."""

from typing import Literal, NamedTuple, TypeAlias

from horsies.executors.base import Call
from horsies.worker.claim_request import Mark

# T6; T7 or T8; T16; T17.
Ending: TypeAlias = Literal["complete", "fail", "cancel", "interrupt"]
# Why the worker ended a run: a cancel request, the end of the drain time, or a second stop signal.
StopReason: TypeAlias = Literal["cancel", "drain", "now"]


class HeldTask(Call):
    """A row this worker has claimed; it is also the call that an executor runs.

    `claim` is `claimed_at` as the fence carries it. A task without `pid` waits in the buffer, one
    with an `ahead_number` was taken before a slot was free for it.
    """

    __slots__ = (
        "ahead_number",
        "beat_at",
        "claim",
        "enqueued_at",
        "held_bytes",
        "held_since",
        "is_workflow_task",
        "lane",
        "pid",
        "position",
        "priority",
        "stop",
        "task_options",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - the columns of a claimed row, in the order they are read
        self,
        task_id: str,
        queue_name: str,
        priority: int,
        lane: int,
        task_name: str,
        args: str | None,
        kwargs: str | None,
        attempt: int,
        claim: str,
        enqueued_at: str,
        task_options: str | None,
        is_workflow_task: bool,
        pid: int | None,
        ahead_number: int | None = None,
        position: int = 0,
    ) -> None:
        super().__init__(task_id, task_name, attempt, args, kwargs, queue_name=queue_name)
        self.priority = priority
        self.lane = lane
        self.claim = claim
        self.enqueued_at = enqueued_at
        self.task_options = task_options
        self.is_workflow_task = is_workflow_task
        self.pid = pid
        self.ahead_number = ahead_number
        self.position = position  # in the claim that took it
        self.held_since = 0.0  # in the buffer, or in an executor
        self.held_bytes = 0  # until its end is written
        self.beat_at = 0.0
        self.stop: StopReason | None = None

    @property
    def mark(self) -> Mark:
        return Mark(self.enqueued_at, self.task_id)

    def __repr__(self) -> str:
        return f"<{self.task_name} {self.task_id}, attempt {self.attempt}>"


class Completion(NamedTuple):
    """The end of one attempt, ready to be written.

    Without `attempt_outcome` it is a success (T6).
    """

    task: HeldTask
    result: str
    ending: Ending = "complete"
    log: str | None = None
    log_truncated: bool = False
    duration_s: float | None = None
    attempt_outcome: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    failed_reason: str | None = None
    retry_delay_s: float | None = None

    @property
    def size(self) -> int:
        """About how many bytes are held until it is written."""
        given = len(self.task.args or "") + len(self.task.kwargs or "")
        return len(self.result) + len(self.log or "") + given + 200
