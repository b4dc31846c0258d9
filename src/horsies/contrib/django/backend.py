"""The backend for Django's Tasks framework: each task is one row of the engine."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.core import checks
from django.utils import timezone
from pydantic_core import to_json

from horsies.clock import utc_now
from horsies.contrib.django.compat import (
    BaseTaskBackend,
    TaskResult,
    TaskResultStatus,
    task_enqueued,
)
from horsies.contrib.django.conf import setting
from horsies.contrib.django.enqueue import check_size, store
from horsies.contrib.django.tasks import HorsiesTask, check_extras, policy_of
from horsies.ids import new_id
from horsies.sending.fingerprint import Fingerprint
from horsies.sending.rows import NewTask, option_columns
from horsies.tasks.options import StoredOptions, write_task_options

KIND = "django_task"
_MIDDLE_PRIORITY = 50  # Django's 0; larger runs first there, smaller runs first here
_OPTIONS = {"enqueue", "timeout", "max_retries", "retry_policy", "good_until", "database"}


class HorsiesBackend(BaseTaskBackend):
    """`TASKS = {"default": {"BACKEND": "horsies.contrib.django.HorsiesBackend"}}`.

    OPTIONS: `enqueue` ("atomic", "on_commit", "autocommit"), `database`, and defaults for
    `timeout`, `max_retries`, `retry_policy` and `good_until`.
    """

    task_class = HorsiesTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    @property
    def database(self) -> str:
        """The alias of the connection that stores the tasks."""
        return str(self.options.get("database") or setting("DATABASE_ALIAS"))

    def validate_task(self, task: Any) -> None:
        super().validate_task(task)
        check_extras(task)

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Store the task and return its result without reading it back: one statement."""
        (result,) = self._store([(task, args, kwargs)])
        task_enqueued.send(type(self), task_result=result)
        return result

    async def aenqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        store_one = sync_to_async(self._store, thread_sensitive=True)
        (result,) = await store_one([(task, args, kwargs)])
        await task_enqueued.asend(type(self), task_result=result)
        return result

    def enqueue_many(self, calls: Iterable[tuple[Any, Sequence[Any], dict[str, Any]]]) -> list[Any]:
        """Store many tasks in few statements: `[(task, args, kwargs), ...]`."""
        results = self._store(list(calls))
        for result in results:
            task_enqueued.send(type(self), task_result=result)
        return results

    async def aenqueue_many(
        self, calls: Iterable[tuple[Any, Sequence[Any], dict[str, Any]]]
    ) -> list[Any]:
        results = await sync_to_async(self._store, thread_sensitive=True)(list(calls))
        for result in results:
            await task_enqueued.asend(type(self), task_result=result)
        return results

    def get_result(self, result_id: str) -> Any:
        from horsies.contrib.django.results import find_result

        return find_result(self, result_id)

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        from horsies.contrib.django.checks import backend_messages

        yield from super().check(**kwargs)
        yield from backend_messages(self.alias, self.options, _OPTIONS)

    def _store(self, calls: Sequence[tuple[Any, Any, Any]]) -> list[Any]:
        now = utc_now()
        results = [self._new_result(call, now) for call in calls]
        rows = [self._row(result, now) for result in results]
        how = self.options.get("enqueue") or setting("ENQUEUE")
        ids = store(rows, how=how, alias=self.database)
        for result, task_id in zip(results, ids, strict=True):
            if result.id != task_id:  # its unique key is held by a task that has not ended
                object.__setattr__(result, "id", task_id)
        return results

    def _new_result(self, call: tuple[Any, Any, Any], now: datetime) -> Any:
        task, args, kwargs = call
        self.validate_task(task)
        return TaskResult(
            task=task,
            id=new_id(),
            status=TaskResultStatus.READY,
            enqueued_at=now if timezone.is_aware(timezone.now()) else timezone.make_naive(now),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=list(args),
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )

    def _row(self, result: Any, now: datetime) -> NewTask:
        task = result.task
        run_at = task.run_after
        if run_at is not None:
            run_at = run_at if timezone.is_aware(run_at) else timezone.make_aware(run_at)
            run_at = run_at.astimezone(UTC)
        seconds = self._extra(task, "good_until")
        good_until = None if seconds is None else (run_at or now) + timedelta(seconds=seconds)
        options = self._options_text(task, good_until)
        args = to_json(result.args).decode() if result.args else None
        kwargs = to_json(result.kwargs).decode() if result.kwargs else None
        check_size(args, kwargs)
        fingerprint = Fingerprint(
            task_name=task.module_path,
            queue_name=task.queue_name,
            priority=_MIDDLE_PRIORITY - int(task.priority),
            good_until=good_until,
            enqueue_delay_seconds=None,
            task_options=options,
        )
        return NewTask(
            id=result.id,
            task_name=task.module_path,
            queue_name=task.queue_name,
            priority=_MIDDLE_PRIORITY - int(task.priority),
            args=args,
            kwargs=kwargs,
            sent_at=now,
            enqueued_at=run_at,
            delay_s=None,
            good_until=good_until,
            task_options=options,
            enqueue_sha=fingerprint.digest(args, kwargs, now),
            **option_columns(options)._asdict(),
        )

    def _extra(self, task: Any, name: str) -> Any:
        return getattr(task, name, None) or self.options.get(name)

    def _options_text(self, task: Any, good_until: datetime | None) -> str:
        """What the row says about its kind comes first, so that it is found without parsing."""
        retries = self._extra(task, "max_retries") or 0
        policy = self._extra(task, "retry_policy") or policy_of(retries)
        timeout = self._extra(task, "timeout")
        stored = write_task_options(
            StoredOptions(
                retry_policy=policy,
                good_until=good_until,
                timeout_ms=None if timeout is None else max(1, int(timeout * 1000)),
                unique_key=getattr(task, "unique_key", None),
            )
        )
        django = {
            "backend": self.alias,
            "priority": int(task.priority),
            "run_after": None if task.run_after is None else task.run_after.isoformat(),
            "takes_context": task.takes_context,
        }
        head = f'{{"kind":"{KIND}","django":{to_json(django).decode()},'
        return head + stored.removeprefix("{")
