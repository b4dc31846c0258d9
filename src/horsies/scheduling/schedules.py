"""`app.schedules`: schedules at run time. What is done is in `control.py` and `by_hand.py`."""

import asyncio
import builtins
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Generic, TypeVar

from psycopg import AsyncConnection, Connection
from psycopg.rows import TupleRow

from horsies.codes import BrokerErrorCode
from horsies.config.schedules import AnySchedule
from horsies.database.database import Database
from horsies.database.operation import FAILURES, operation_error
from horsies.database.statement import run, run_blocking
from horsies.database.watchdog import limited
from horsies.operations.control import UNSAID, Note, record
from horsies.result import Err, Ok
from horsies.result.broker import BrokerOperationError, BrokerResult
from horsies.scheduling import by_hand, control
from horsies.scheduling.by_hand import Backfill
from horsies.scheduling.control import ScheduleInfo
from horsies.scheduling.finding import Outside, RefusedError, Steps
from horsies.scheduling.sending import ScheduleSendingApp
from horsies.scheduling.statements import ScheduleRun

T = TypeVar("T")


class Schedules:
    """See and steer the schedules of an app, those in code and those added at run time.

    What changes something takes a `Note` with who and why, for `horsies_audit`.
    """

    def __init__(self, app: ScheduleSendingApp) -> None:
        self._app = app

    def list(self) -> BrokerResult[builtins.list[ScheduleInfo]]:
        """All schedules, by name."""
        return self._perform(control.list_steps(self._app))

    async def list_async(self) -> BrokerResult[builtins.list[ScheduleInfo]]:
        return await self._perform_async(control.list_steps(self._app))

    def next_runs(self, name: str, count: int = 5) -> BrokerResult[builtins.list[datetime]]:
        """When a schedule runs next, in UTC; never while it is paused."""
        return self._perform(control.next_runs_steps(self._app, name, count))

    async def next_runs_async(
        self, name: str, count: int = 5
    ) -> BrokerResult[builtins.list[datetime]]:
        return await self._perform_async(control.next_runs_steps(self._app, name, count))

    def pause(
        self, name: str, *, reason: str | None = None, note: Note = UNSAID
    ) -> BrokerResult[None]:
        """Send no slots until it is resumed; deploys do not resume it.

        The reason is shown with the schedule, and in the audit unless the note has another.
        """
        return self._perform(self._pause_steps(name, reason, note))

    async def pause_async(
        self, name: str, *, reason: str | None = None, note: Note = UNSAID
    ) -> BrokerResult[None]:
        return await self._perform_async(self._pause_steps(name, reason, note))

    def _pause_steps(self, name: str, reason: str | None, note: Note) -> Steps[None]:
        steps = control.pause_steps(self._app, name, reason)
        return _noted(steps, replace(note, reason=note.reason or reason), "pause", name)

    def resume(self, name: str, *, note: Note = UNSAID) -> BrokerResult[bool]:
        """Go on; False if it was not paused.

        Slots of the pause are sent only if the schedule has `catch_up_missed`.
        """
        steps = control.resume_steps(self._app, name)
        return self._perform(_noted(steps, note, "resume", name))

    async def resume_async(self, name: str, *, note: Note = UNSAID) -> BrokerResult[bool]:
        steps = control.resume_steps(self._app, name)
        return await self._perform_async(_noted(steps, note, "resume", name))

    def run_now(self, name: str, *, note: Note = UNSAID) -> BrokerResult[str]:
        """Send one run at once, beside its slots; the id of the task or workflow."""
        steps = by_hand.run_now_steps(self._app, name)
        return self._perform(_noted(steps, note, "run", name))

    async def run_now_async(self, name: str, *, note: Note = UNSAID) -> BrokerResult[str]:
        steps = by_hand.run_now_steps(self._app, name)
        return await self._perform_async(_noted(steps, note, "run", name))

    def backfill(
        self,
        name: str,
        start: datetime,
        end: datetime,
        *,
        preview: bool = True,
        again: bool = False,
        note: Note = UNSAID,
    ) -> BrokerResult[Backfill]:
        """Send the slots from `start` until before `end` that were not sent yet.

        A preview sends nothing. All slots are sent in one transaction; to repeat it sends nothing
        twice. Slots whose history is pruned may have been sent: they are skipped, unless `again`.
        """
        steps = by_hand.backfill_steps(self._app, name, start, end, preview=preview, again=again)
        return self._perform(steps if preview else _noted(steps, note, "backfill", name))

    async def backfill_async(
        self,
        name: str,
        start: datetime,
        end: datetime,
        *,
        preview: bool = True,
        again: bool = False,
        note: Note = UNSAID,
    ) -> BrokerResult[Backfill]:
        steps = by_hand.backfill_steps(self._app, name, start, end, preview=preview, again=again)
        return await self._perform_async(
            steps if preview else _noted(steps, note, "backfill", name)
        )

    def add(self, schedule: AnySchedule, *, note: Note = UNSAID) -> BrokerResult[None]:
        """Store a schedule beside those in code; running schedulers take it up at once."""
        steps = control.add_steps(self._app, schedule)
        return self._perform(_noted(steps, note, "add", schedule.name))

    async def add_async(self, schedule: AnySchedule, *, note: Note = UNSAID) -> BrokerResult[None]:
        steps = control.add_steps(self._app, schedule)
        return await self._perform_async(_noted(steps, note, "add", schedule.name))

    def change(self, schedule: AnySchedule, *, note: Note = UNSAID) -> BrokerResult[None]:
        """Replace the schedule of this name that was added at run time."""
        steps = control.change_steps(self._app, schedule)
        return self._perform(_noted(steps, note, "change", schedule.name))

    async def change_async(
        self, schedule: AnySchedule, *, note: Note = UNSAID
    ) -> BrokerResult[None]:
        steps = control.change_steps(self._app, schedule)
        return await self._perform_async(_noted(steps, note, "change", schedule.name))

    def remove(self, name: str, *, note: Note = UNSAID) -> BrokerResult[None]:
        """Remove a schedule that was added at run time; its history stays."""
        steps = control.remove_steps(self._app, name)
        return self._perform(_noted(steps, note, "remove", name))

    async def remove_async(self, name: str, *, note: Note = UNSAID) -> BrokerResult[None]:
        steps = control.remove_steps(self._app, name)
        return await self._perform_async(_noted(steps, note, "remove", name))

    def history(self, name: str, limit: int = 50) -> BrokerResult[builtins.list[ScheduleRun]]:
        """What became of the last slots, the latest first."""
        return self._perform(control.history_steps(self._app, name, limit))

    async def history_async(
        self, name: str, limit: int = 50
    ) -> BrokerResult[builtins.list[ScheduleRun]]:
        return await self._perform_async(control.history_steps(self._app, name, limit))

    def _perform(self, steps: Steps[T]) -> BrokerResult[T]:
        """All steps in one transaction; what is to be done outside comes between two."""
        try:
            database = self._app.get_broker().database
            database.ensure_schema()
            answer: object = None
            while True:
                reached = _perform_part(steps, database, answer)
                if not isinstance(reached, Outside):
                    return Ok(reached.value)
                answer = reached.function()
        except (RefusedError, *FAILURES) as error:
            return Err(_as_value(error))

    async def _perform_async(self, steps: Steps[T]) -> BrokerResult[T]:
        try:
            database = self._app.get_broker().database
            await database.ensure_schema_async()
            answer: object = None
            while True:
                reached = await _perform_part_async(steps, database, answer)
                if not isinstance(reached, Outside):
                    return Ok(reached.value)
                answer = await asyncio.to_thread(reached.function)
        except (RefusedError, *FAILURES) as error:
            return Err(_as_value(error))


def _noted(steps: Steps[T], note: Note, action: str, name: str) -> Steps[T]:
    """The same, with a line in the audit, in the same transaction."""
    value = yield from steps
    yield record(note, action, f"schedule {name}", {})
    return value


@dataclass(frozen=True, slots=True)
class _End(Generic[T]):
    value: T


def _perform_part(steps: Steps[T], database: Database, answer: object) -> Outside | _End[T]:
    """Perform, in a transaction, until the end, or until something is to be done outside."""
    limit_s = database.statement_limit_s
    with (
        database.pool.connection() as connection,
        database.watchdog.limit(connection, limit_s) as renew,
        connection.transaction(),
    ):
        return _take(steps, connection, partial(renew, limit_s), answer)


async def _perform_part_async(
    steps: Steps[T], database: Database, answer: object
) -> Outside | _End[T]:
    limit_s = database.statement_limit_s
    async with database.pool.connection_async() as connection:
        with limited(connection, limit_s) as renew:
            async with connection.transaction():
                return await _take_async(steps, connection, partial(renew, limit_s), answer)


def _take(
    steps: Steps[T], connection: Connection[TupleRow], renew: Callable[[], None], answer: object
) -> Outside | _End[T]:
    try:
        step = steps.send(answer)
        while not isinstance(step, Outside):
            rows = run_blocking(connection, step)
            renew()  # the limit is each statement's own
            step = steps.send(rows)
    except StopIteration as end:
        return _End(end.value)
    return step


async def _take_async(
    steps: Steps[T],
    connection: AsyncConnection[TupleRow],
    renew: Callable[[], None],
    answer: object,
) -> Outside | _End[T]:
    try:
        step = steps.send(answer)
        while not isinstance(step, Outside):
            rows = await run(connection, step)
            renew()
            step = steps.send(rows)
    except StopIteration as end:
        return _End(end.value)
    return step


def _as_value(error: BaseException) -> BrokerOperationError:
    if isinstance(error, RefusedError):
        return BrokerOperationError(error.code, str(error), retryable=False)
    return operation_error(BrokerErrorCode.SCHEDULE_CONTROL_FAILED, error)
