"""All of a send that does not depend on its arguments, worked out once per task and options."""

import hashlib
import math
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json

from horsies.client.options import SendOptions, check_options, stored_options
from horsies.client.types import TaskSendPayload
from horsies.codec.fingerprint import enqueue_fingerprint
from horsies.codec.signature import EncodedArguments
from horsies.database.rows import NewTask
from horsies.tasks.definition import TaskDefinition
from horsies.tasks.options import parse_task_options
from horsies.tasks.queues import resolve_queue


class Plan:
    """Turns arguments into rows; raises HorsiesError or ValueError for options that cannot be."""

    def __init__(self, definition: TaskDefinition, options: SendOptions) -> None:
        self.definition = definition
        self.options = options
        queue_name, priority = definition.queue_name, definition.priority
        if options.queue_name is not None:
            queue = resolve_queue(definition.config, options.queue_name)
            queue_name, priority = queue.name, queue.priority
        self._place = (queue_name, priority if options.priority is None else options.priority)
        self._delay_s = check_options(options)
        self._task_options = stored_options(definition, options)
        self._stored = _stored_part(self._task_options)
        head = [definition.name, *self._place]
        tail = [_instant(options.good_until), self._delay_s, self._task_options]
        config = definition.config
        limits = (config.payload_warn_bytes, config.payload_max_bytes)
        self.unremarkable_bytes = min((n for n in limits if n is not None), default=math.inf)
        self._sent: tuple[datetime | None, str | None] = (None, None)
        self._sha_head = _inside(head)
        self._sha_tail = _inside(tail)

    @property
    def is_plain(self) -> bool:
        """Whether its rows can be copied as they are: new, due at once, holding no key."""
        options = self.options
        return not (
            options.unique_key or options.tags or options.run_at or options.delay is not None
        )

    def row(self, task_id: str, arguments: EncodedArguments, sent_at: datetime) -> NewTask:
        """The row to store for these arguments."""
        queue_name, priority = self._place
        max_retries, unique_key, unique_stored, tags = self._stored
        return NewTask(
            task_id, self.definition.name, queue_name, priority, arguments.args_json,
            arguments.kwargs_json, sent_at, self.options.run_at, self._delay_s,
            self.options.good_until, max_retries, self._task_options,
            self._fingerprint(arguments, sent_at), unique_key, unique_stored, tags,
        )  # fmt: skip

    def _fingerprint(self, arguments: EncodedArguments, sent_at: datetime) -> str:
        """As `enqueue_fingerprint`, with the constant parts of its text made beforehand."""
        known, instant = self._sent
        if known is not sent_at:  # a bulk send has one instant for thousands of rows
            instant = _instant(sent_at)
            self._sent = (sent_at, instant)
        middle = _inside([arguments.args_json, arguments.kwargs_json, instant])
        text = b"[%b,%b,%b]" % (self._sha_head, middle, self._sha_tail)
        return hashlib.sha256(text).hexdigest()


def payload_of(row: NewTask) -> TaskSendPayload:
    """What a failed send gives back, to be sent again as itself."""
    assert row.sent_at is not None
    return TaskSendPayload(
        row.task_name, row.queue_name, row.priority, row.args, row.kwargs, row.sent_at,
        row.good_until, row.delay_s, row.task_options, row.enqueue_sha, row.enqueued_at,
    )  # fmt: skip


def row_of(task_id: str, payload: TaskSendPayload) -> NewTask:
    """The row a payload stands for."""
    return NewTask(
        task_id, payload.task_name, payload.queue_name, payload.priority, payload.args_json,
        payload.kwargs_json, payload.sent_at, payload.run_at, payload.enqueue_delay_seconds,
        payload.good_until, *_split_stored(payload),
    )  # fmt: skip


def is_unchanged(payload: TaskSendPayload) -> bool:
    """Whether the payload still hashes to its own fingerprint."""
    sha = enqueue_fingerprint(
        task_name=payload.task_name,
        queue_name=payload.queue_name,
        priority=payload.priority,
        args_json=payload.args_json,
        kwargs_json=payload.kwargs_json,
        sent_at=payload.sent_at,
        good_until=payload.good_until,
        enqueue_delay_seconds=payload.enqueue_delay_seconds,
        task_options=payload.task_options,
    )
    return sha == payload.enqueue_sha


def _split_stored(payload: TaskSendPayload) -> tuple[Any, ...]:
    max_retries, *rest = _stored_part(payload.task_options)
    return (max_retries, payload.task_options, payload.enqueue_sha, *rest)


def _stored_part(task_options: str | None) -> tuple[int, str | None, bool, str | None]:
    """What the options text says about columns: retries, unique key, its scope, tags."""
    stored = parse_task_options(task_options)
    tags = to_json(stored.tags).decode() if stored.tags else None
    return stored.max_retries, stored.unique_key, stored.unique_scope == "stored", tags


def _inside(values: list[Any]) -> bytes:
    """A JSON array without its brackets."""
    return to_json(values)[1:-1]


def _instant(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat(timespec="microseconds")
