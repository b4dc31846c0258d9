"""What broker operations give: results as values; the shapes of tasks, attempts and pings."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from horsies.result import Ok, Result, TaskError, TaskResult
from horsies.states import TaskStatus

T = TypeVar("T")


class BrokerErrorCode(StrEnum):
    SCHEMA_INIT_FAILED = "SCHEMA_INIT_FAILED"
    ENQUEUE_FAILED = "ENQUEUE_FAILED"
    PAYLOAD_MISMATCH = "PAYLOAD_MISMATCH"
    TASK_INFO_QUERY_FAILED = "TASK_INFO_QUERY_FAILED"
    MONITORING_QUERY_FAILED = "MONITORING_QUERY_FAILED"
    CLEANUP_FAILED = "CLEANUP_FAILED"
    CLOSE_FAILED = "CLOSE_FAILED"
    LISTENER_START_FAILED = "LISTENER_START_FAILED"
    LISTENER_SUBSCRIBE_FAILED = "LISTENER_SUBSCRIBE_FAILED"
    NO_BROKER = "NO_BROKER"
    DB_PING_FAILED = "DB_PING_FAILED"
    WORKER_PING_FAILED = "WORKER_PING_FAILED"


@dataclass(frozen=True, slots=True)
class BrokerOperationError:
    code: BrokerErrorCode
    message: str
    retryable: bool
    exception: BaseException | None = None


BrokerResult: TypeAlias = Result[T, BrokerOperationError]


class TransparentOk(Ok[T]):
    """An `Ok` that can also be used as the list or number it holds."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        value: Any = self.ok_value
        return iter(value) if isinstance(value, list) else iter((value,))

    def __len__(self) -> int:
        value: Any = self.ok_value
        return len(value)

    def __bool__(self) -> bool:
        return bool(self.ok_value)

    def __getitem__(self, index: Any) -> Any:
        value: Any = self.ok_value
        return value[index]

    def __int__(self) -> int:
        value: Any = self.ok_value
        return int(value)

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Ok):
            return bool(self.ok_value == other.ok_value)
        return bool(self.ok_value == other)

    def __hash__(self) -> int:
        return hash(("Ok", str(self.ok_value)))

    def __lt__(self, other: Any) -> bool:
        return bool(self.ok_value < other)

    def __le__(self, other: Any) -> bool:
        return bool(self.ok_value <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.ok_value > other)

    def __ge__(self, other: Any) -> bool:
        return bool(self.ok_value >= other)

    def __str__(self) -> str:
        return str(self.ok_value)

    def __format__(self, spec: str) -> str:
        return format(self.ok_value, spec)


@dataclass(frozen=True, slots=True)
class TaskAttemptInfo:
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


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """One task as it stands. Parts that cost more are there only when asked for."""

    task_id: str
    task_name: str
    status: TaskStatus
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
    good_until: datetime | None = None
    tags: list[str] | None = None
    result: TaskResult[Any, TaskError] | None = None
    failed_reason: str | None = None
    log: str | None = None
    attempts: list[TaskAttemptInfo] | None = None


@dataclass(frozen=True, slots=True)
class DatabasePing:
    round_trip_ms: float
    database_time: datetime
    server_version: str


@dataclass(frozen=True, slots=True)
class WorkerPong:
    worker_id: str
    hostname: str
    pid: int
    queues: list[str]
    tasks_running: int
    round_trip_ms: float
