"""`app.schedules`: schedules at run time. What is done is in `control.py` and `by_hand.py`."""

import asyncio
import builtins
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from psycopg import AsyncConnection, Connection
from psycopg.rows import TupleRow

from horsies.codes import BrokerErrorCode
from horsies.config.schedules import AnySchedule
from horsies.database.operation import FAILURES, operation_error
from horsies.database.statement import run, run_blocking
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
    """See and steer the schedules of an app, those in code and those added at run time."""

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

    def pause(self, name: str, *, reason: str | None = None) -> BrokerResult[None]:
        """Send no slots until it is resumed; deploys do not resume it."""
        return self._perform(control.pause_steps(self._app, name, reason))

    async def pause_async(self, name: str, *, reason: str | None = None) -> BrokerResult[None]:
        return await self._perform_async(control.pause_steps(self._app, name, reason))

    def resume(self, name: str) -> BrokerResult[bool]:
        """Go on; False if it was not paused.

        Slots of the pause are sent only if the schedule has `catch_up_missed`.
        """
        return self._perform(control.resume_steps(self._app, name))

    async def resume_async(self, name: str) -> BrokerResult[bool]:
        return await self._perform_async(control.resume_steps(self._app, name))

    def run_now(self, name: str) -> BrokerResult[str]:
        """Send one run at once, beside its slots; the id of the task or workflow."""
        return self._perform(by_hand.run_now_steps(self._app, name))

    async def run_now_async(self, name: str) -> BrokerResult[str]:
        return await self._perform_async(by_hand.run_now_steps(self._app, name))

    def backfill(
        self,
        name: str,
        start: datetime,
        end: datetime,
        *,
        preview: bool = True,
        again: bool = False,
    ) -> BrokerResult[Backfill]:
        """Send the slots from `start` until before `end` that were not sent yet.

        A preview sends nothing. All slots are sent in one transaction; to repeat it sends nothing
        twice. Slots whose history is pruned may have been sent: they are skipped, unless `again`.
        """
        return self._perform(
            by_hand.backfill_steps(self._app, name, start, end, preview=preview, again=again)
        )

    async def backfill_async(
        self,
        name: str,
        start: datetime,
        end: datetime,
        *,
        preview: bool = True,
        again: bool = False,
    ) -> BrokerResult[Backfill]:
        return await self._perform_async(
            by_hand.backfill_steps(self._app, name, start, end, preview=preview, again=again)
        )

    def add(self, schedule: AnySchedule) -> BrokerResult[None]:
        """Store a schedule beside those in code; running schedulers take it up at once."""
        return self._perform(control.add_steps(self._app, schedule))

    async def add_async(self, schedule: AnySchedule) -> BrokerResult[None]:
        return await self._perform_async(control.add_steps(self._app, schedule))

    def change(self, schedule: AnySchedule) -> BrokerResult[None]:
        """Replace the schedule of this name that was added at run time."""
        return self._perform(control.change_steps(self._app, schedule))

    async def change_async(self, schedule: AnySchedule) -> BrokerResult[None]:
        return await self._perform_async(control.change_steps(self._app, schedule))

    def remove(self, name: str) -> BrokerResult[None]:
        """Remove a schedule that was added at run time; its history stays."""
        return self._perform(control.remove_steps(self._app, name))

    async def remove_async(self, name: str) -> BrokerResult[None]:
        return await self._perform_async(control.remove_steps(self._app, name))

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
                with database.pool.connection() as connection, connection.transaction():
                    reached = _take(steps, connection, answer)
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
                async with database.pool.connection_async() as connection, connection.transaction():
                    reached = await _take_async(steps, connection, answer)
                if not isinstance(reached, Outside):
                    return Ok(reached.value)
                answer = await asyncio.to_thread(reached.function)
        except (RefusedError, *FAILURES) as error:
            return Err(_as_value(error))


@dataclass(frozen=True, slots=True)
class _End(Generic[T]):
    value: T


def _take(steps: Steps[T], connection: Connection[TupleRow], answer: object) -> Outside | _End[T]:
    """Perform statements until the end, or until something is to be done outside."""
    try:
        step = steps.send(answer)
        while not isinstance(step, Outside):
            step = steps.send(run_blocking(connection, step))
    except StopIteration as end:
        return _End(end.value)
    return step


async def _take_async(
    steps: Steps[T], connection: AsyncConnection[TupleRow], answer: object
) -> Outside | _End[T]:
    try:
        step = steps.send(answer)
        while not isinstance(step, Outside):
            step = steps.send(await run(connection, step))
    except StopIteration as end:
        return _End(end.value)
    return step


def _as_value(error: BaseException) -> BrokerOperationError:
    if isinstance(error, RefusedError):
        return BrokerOperationError(error.code, str(error), retryable=False)
    return operation_error(BrokerErrorCode.SCHEDULE_CONTROL_FAILED, error)
