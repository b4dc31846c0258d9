"""The row of a new task, and its twin for callers: the payload of a send that failed.

The fields of `NewTask` are the parameters of `horsies_enqueue_tasks`: a column is added to both.
"""

from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Required, TypedDict

from pydantic_core import to_json

from horsies.clock import utc_now
from horsies.codes import BrokerErrorCode
from horsies.result.broker import BrokerOperationError
from horsies.sending.errors import TaskSendPayload
from horsies.tasks.options import parse_task_options

UniqueScope = Literal["unfinished", "stored"]


class NewTask(NamedTuple):  # made for every send: a named tuple costs a third of a dataclass
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


class OptionColumns(NamedTuple):
    """What the options text of a row says about its other columns."""

    max_retries: int
    unique_key: str | None
    unique_stored: bool
    tags: str | None


def option_columns(task_options: str | None) -> OptionColumns:
    stored = parse_task_options(task_options)
    return OptionColumns(
        max_retries=stored.max_retries,
        unique_key=stored.unique_key,
        unique_stored=stored.unique_scope == "stored",
        tags=to_json(stored.tags).decode() if stored.tags else None,
    )


class EnqueueOptions(TypedDict, total=False):
    """What `enqueue` takes beside the names of task and queue; see `new_row`."""

    task_id: Required[str]
    enqueue_sha: Required[str]
    args_json: str | None
    kwargs_json: str | None
    priority: int
    sent_at: datetime | None
    enqueued_at: datetime | None
    enqueue_delay_seconds: float | None
    good_until: datetime | None
    task_options: str | None
    unique_key: str | None
    unique_scope: UniqueScope
    tags: str | None


def new_row(  # noqa: PLR0913 - the contract's signature
    task_name: str,
    queue_name: str,
    *,
    task_id: str,
    enqueue_sha: str,
    args_json: str | None = None,
    kwargs_json: str | None = None,
    priority: int = 100,
    sent_at: datetime | None = None,
    enqueued_at: datetime | None = None,
    enqueue_delay_seconds: float | None = None,
    good_until: datetime | None = None,
    task_options: str | None = None,
    unique_key: str | None = None,
    unique_scope: UniqueScope = "unfinished",
    tags: str | None = None,
) -> NewTask | BrokerOperationError:
    """The row of a task to enqueue, or why there can be none."""
    problem = None
    if enqueued_at is not None and enqueue_delay_seconds is not None:
        problem = "give enqueued_at or enqueue_delay_seconds, not both"
    elif (
        sent_at is not None
        and enqueued_at is None
        and enqueue_delay_seconds is None
        and sent_at > utc_now() + timedelta(seconds=5)
    ):
        problem = "sent_at lies in the future; use enqueue_delay_seconds for a delay"
    if problem is not None:
        return BrokerOperationError(BrokerErrorCode.ENQUEUE_FAILED, problem, retryable=False)
    return NewTask(
        id=task_id,
        task_name=task_name,
        queue_name=queue_name,
        priority=priority,
        args=args_json,
        kwargs=kwargs_json,
        sent_at=sent_at,
        enqueued_at=enqueued_at,
        delay_s=enqueue_delay_seconds,
        good_until=good_until,
        max_retries=parse_task_options(task_options).max_retries,
        task_options=task_options,
        enqueue_sha=enqueue_sha,
        unique_key=unique_key,
        unique_stored=unique_scope == "stored",
        tags=tags,
    )


def payload_of(row: NewTask) -> TaskSendPayload | None:
    """What a failed send gives back, to be sent again as itself; a row without its time cannot."""
    if row.sent_at is None:
        return None
    return TaskSendPayload(
        task_name=row.task_name,
        queue_name=row.queue_name,
        priority=row.priority,
        args_json=row.args,
        kwargs_json=row.kwargs,
        sent_at=row.sent_at,
        good_until=row.good_until,
        enqueue_delay_seconds=row.delay_s,
        task_options=row.task_options,
        enqueue_sha=row.enqueue_sha,
        run_at=row.enqueued_at,
    )


def row_of(task_id: str, payload: TaskSendPayload) -> NewTask:
    """The row a payload stands for."""
    return NewTask(
        id=task_id,
        task_name=payload.task_name,
        queue_name=payload.queue_name,
        priority=payload.priority,
        args=payload.args_json,
        kwargs=payload.kwargs_json,
        sent_at=payload.sent_at,
        enqueued_at=payload.run_at,
        delay_s=payload.enqueue_delay_seconds,
        good_until=payload.good_until,
        task_options=payload.task_options,
        enqueue_sha=payload.enqueue_sha,
        **option_columns(payload.task_options)._asdict(),
    )
