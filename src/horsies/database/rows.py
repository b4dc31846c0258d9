"""The shapes of rows that go to and come from PostgreSQL.

Named tuples: immutable, and the cheapest to make by hundreds.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple


class NewTask(NamedTuple):
    """A task to enqueue. The tags are a JSON array's text."""

    id: str
    task_name: str
    queue_name: str
    priority: int
    args: str | None
    kwargs: str | None
    sent_at: datetime | None
    enqueued_at: datetime | None
    delay_s: float | None
    good_until: datetime | None
    max_retries: int
    task_options: str | None
    enqueue_sha: str
    unique_key: str | None = None
    unique_stored: bool = False
    tags: str | None = None


class Receipt(NamedTuple):
    """What the database answered for one input of a batch."""

    task_id: str
    outcome: str


class FailReceipt(NamedTuple):
    task_id: str
    outcome: str
    retry_after_s: float | None


class StoredResult(NamedTuple):
    task_id: str
    task_name: str
    status: str
    result: str | None
    error_code: str | None


class StoredTask(NamedTuple):
    task_id: str
    task_name: str
    status: str
    queue_name: str
    priority: int
    retry_count: int
    max_retries: int
    next_retry_at: datetime | None
    sent_at: datetime | None
    enqueued_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None
    error_code: str | None
    unique_key: str | None
    rerun_of: str | None
    good_until: datetime | None
    tags: list[str] | None
    result: str | None
    failed_reason: str | None
    log: str | None


class StoredAttempt(NamedTuple):
    task_id: str
    attempt: int
    outcome: str
    will_retry: bool
    started_at: datetime
    finished_at: datetime
    error_code: str | None
    error_message: str | None
    failed_reason: str | None
    worker_id: str | None
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None


class StaleRun(NamedTuple):
    """A RUNNING row without a sign of life, with what the retry decision needs."""

    id: str
    task_name: str
    owner_id: str | None
    claim: str | None
    attempt: int
    task_options: str | None
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None
    started_at: datetime | None
    last_heartbeat: datetime | None
    now_at: datetime


class SweptStep(NamedTuple):
    """What one step of a sweep changed, or why it could not."""

    step: str
    changed: int
    failure: str | None


class AbsentWorker(NamedTuple):
    """A worker that is gone from the database, and how to recognize its process on its host."""

    worker_id: str
    hostname: str
    pid: int
    pid_started_at: float | None


class ExpiredTask(NamedTuple):
    id: str
    task_name: str
    queue_name: str
    priority: int
    sent_at: datetime | None
    enqueued_at: datetime
    good_until: datetime
    expired_for: timedelta


class WorkerStats(NamedTuple):
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None
    active_tasks: int
    oldest_task_start: datetime | None
    latest_heartbeat: datetime | None


class Ping(NamedTuple):
    database_time: datetime
    server_version: str


class Scalar(NamedTuple):
    """One column, whatever it is."""

    value: Any
