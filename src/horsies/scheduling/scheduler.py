"""The scheduler: sends the task or starts the workflow of each slot, once.

Any number of schedulers may run. A slot has an id of its own in the database, and each due schedule
is fired in one transaction that holds its state row: whoever comes second finds it done. Workflows
are built before it, in `builds.py`.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from horsies.clock import monotonic
from horsies.config.schedules import AnySchedule, Overlap, TaskSchedule, WorkflowSchedule
from horsies.database.operation import describe
from horsies.database.statement import Statement, run
from horsies.database.verdict import is_connection_failure, is_transient
from horsies.database.watchdog import limited
from horsies.scheduling.builds import BuildFailure, Builds
from horsies.scheduling.sending import ScheduleSendingApp, send_statement, start_statement
from horsies.scheduling.slots import config_hash, due_slots, first_slot, slot_id
from horsies.scheduling.statements import (
    DueSchedules,
    LockedSchedule,
    SlotRun,
    current_time,
    due_schedules,
    has_missing_schedules,
    init_schedules,
    lock_schedule,
    open_runs,
    record_firing,
)
from horsies.scheduling.stored import read_definition
from horsies.workflows.spec import WorkflowSpec

_logger = logging.getLogger("horsies.scheduler")

_BATCH = 100
# Notifications wake; this is how long a lost one may cost.
_POLL_S = 30.0
_AT_ONCE_S = 0.001
_SLOTS_PER_TRANSACTION = 100
# Far longer than all slots of a transaction take; a server that is silent for so long has gone.
_LIMIT_S = 60.0
_FIRST = (datetime.min.replace(tzinfo=UTC), "")

# What a task schedule needs before it is fired is nothing; a workflow is built, or cannot be.
Built = WorkflowSpec[Any] | BuildFailure | None


class SchedulerApp(ScheduleSendingApp, Protocol):
    """The part of an app that a scheduler needs."""


class Scheduler:
    """A service: one pass fires what is due and says when the next pass is worth it."""

    name = "scheduler"

    def __init__(self, app: SchedulerApp) -> None:
        config = app.config.schedule
        assert config is not None, "an app without schedules has no scheduler"
        self._app = app
        self._database = app.get_broker().database
        self._owner = config.owner
        self._check_interval_s = float(config.check_interval_seconds)
        self._schedules: Mapping[str, AnySchedule] = {
            schedule.name: schedule for schedule in config.schedules if schedule.enabled
        }
        self._is_initialised = False
        self._look_for_missing_at = 0.0
        self._looked_to = 0
        self._may_miss_any = False
        self._said: dict[str, str] = {}
        self.builds = Builds(app)
        self.interval_s = self._check_interval_s

    async def initialise(self) -> None:
        """Make the state of new and changed schedules; forget those that are no longer there."""
        ((now,),) = await self._database.run_async(current_time())
        firsts = [
            (name, self._first_slot(schedule, now), config_hash(schedule))
            for name, schedule in self._schedules.items()
        ]
        statement = init_schedules(self._owner, firsts, syncs=True)
        for receipt in await self._database.run_async(statement):
            if receipt.outcome == "changed":
                _logger.warning("schedule %s has changed: its next run is anew", receipt.task_id)
            elif receipt.outcome == "taken":
                _logger.error(
                    "schedule %s belongs to another owner; it is left alone", receipt.task_id
                )
        self._is_initialised = True
        self._look_for_missing_at = monotonic() + _POLL_S

    def _first_slot(self, schedule: AnySchedule, now: datetime) -> datetime | None:
        """One that cannot be worked out keeps its state, and the others go on."""
        try:
            return first_slot(schedule, now)
        except (ValueError, OverflowError) as error:
            self._report(schedule.name, str(error))
            return None

    def look_for_missing(self) -> None:
        """Someone has deleted state: have the next pass look whether a schedule has none."""
        self._may_miss_any = True

    async def run_once(self) -> int:
        """Fire what is due; return how many tasks and workflows were sent."""
        if not self._is_initialised or await self._has_missing():
            await self.initialise()
        self.builds.begin_pass()
        sent = 0
        seen: set[str] = set()
        after = _FIRST
        while True:
            (due,) = await self._database.run_async(due_schedules(self._owner, after, _BATCH))
            for name, definition in zip(due.names, due.definitions, strict=True):
                sent += await self._try(name, definition)
            seen.update(due.names)
            if len(due.names) < _BATCH or due.last_run_at is None:
                break
            after = (due.last_run_at, due.names[-1])
        if seen:
            (due,) = await self._database.run_async(due_schedules(self._owner, _FIRST, _BATCH))
        self.interval_s = self._interval_s(due, seen)
        return sent

    def _interval_s(self, due: DueSchedules, seen: set[str]) -> float:
        """Until the next slot. What this pass has left over waits for the next tick."""
        if not seen.issuperset(due.names):
            return _AT_ONCE_S  # due since the pass began
        wait_s = _POLL_S if due.next_after_s is None else float(due.next_after_s)
        return min(self._check_interval_s if due.names else _POLL_S, max(_AT_ONCE_S, wait_s))

    async def _has_missing(self) -> bool:
        """Whether state was deleted. All schedules are looked at when that was told.

        Now and then some are, in turn, should a notification be lost: a look costs the same for ten
        thousand schedules as for a hundred.
        """
        if self._may_miss_any:
            self._may_miss_any = False
            names = list(self._schedules)
        elif monotonic() >= self._look_for_missing_at:
            names = list(islice(self._schedules, self._looked_to, self._looked_to + _BATCH))
            self._looked_to = self._looked_to + _BATCH if len(names) == _BATCH else 0
        else:
            return False
        self._look_for_missing_at = monotonic() + _POLL_S
        return bool((await self._database.run_async(has_missing_schedules(names)))[0].value)

    async def _try(self, name: str, definition: Any) -> int:
        """Fire one schedule; whatever it meets, the others go on."""
        try:
            schedule = self._schedules.get(name)
            if schedule is None and definition is not None:
                schedule = read_definition(name, definition)
            if schedule is None:
                return 0  # an older deploy does not know what a newer one has added
            built: Built = None
            if isinstance(schedule, WorkflowSchedule):
                built = await self.builds.take(schedule)
                if built is None:
                    return 0  # not ready yet
            return await self._fire(schedule, definition, built)
        except ValueError as error:  # a definition that was stored by hand
            self._report(name, str(error))
        except Exception as error:  # whatever a row holds, it costs no other schedule
            if is_connection_failure(error):
                raise
            self._report(name, describe(error))
        return 0

    async def _fire(self, schedule: AnySchedule, definition: Any, built: Built) -> int:
        async with self._database.pool.connection_async() as connection:
            with limited(connection, _LIMIT_S):
                async with connection.transaction():
                    return await self._fire_in(connection, schedule, definition, built)

    async def _fire_in(
        self,
        connection: AsyncConnection[TupleRow],
        schedule: AnySchedule,
        definition: Any,
        built: Built,
    ) -> int:
        held = await run(connection, lock_schedule(self._owner, schedule.name))
        if not held:
            return 0  # another scheduler has it
        if schedule.name not in self._schedules and held[0].definition != definition:
            return 0  # it was changed just now; the next pass knows what it is
        return await self._fire_slots(connection, schedule, held[0], built)

    async def _fire_slots(
        self,
        connection: AsyncConnection[TupleRow],
        schedule: AnySchedule,
        state: LockedSchedule,
        built: Built,
    ) -> int:
        due = due_slots(schedule, state.next_run_at, state.now_at)
        next_at = due.next_run_at
        runs: list[SlotRun] = []
        for number, slot in enumerate(due.slots):
            if number == _SLOTS_PER_TRANSACTION:
                next_at = slot
                break
            if await _is_held_back(connection, schedule, runs):
                runs.append(SlotRun(slot, "skipped", reason="an earlier run has not ended"))
                continue
            runs.append(await self._run(connection, schedule, slot, built))
            if runs[-1].outcome == "failed":  # what is done stays done; this one is tried again
                next_at = slot
                break
        if due.missed_from is not None and runs and runs[-1].outcome != "failed":
            runs.append(SlotRun(due.missed_from, "missed", reason="catch_up_missed is off"))
        await run(connection, record_firing(schedule.name, next_at, runs))
        return sum(run.outcome == "sent" for run in runs)

    async def _run(
        self,
        connection: AsyncConnection[TupleRow],
        schedule: AnySchedule,
        slot: datetime,
        built: Built,
    ) -> SlotRun:
        """Send the task or start the workflow of a slot, and say what became of it."""
        if isinstance(built, BuildFailure):
            self._report(schedule.name, built.reason)
            return SlotRun(slot, "failed", reason=built.reason)
        try:
            async with connection.transaction():
                await run(connection, self._statement(schedule, slot, built))
        except Exception as error:  # user code: serializers; and whatever refuses this one row
            if is_transient(error):
                raise
            self._report(schedule.name, describe(error))
            return SlotRun(slot, "failed", reason=describe(error))
        self._said.pop(schedule.name, None)
        run_id = slot_id(schedule.name, slot)
        if isinstance(schedule, TaskSchedule):
            return SlotRun(slot, "sent", task_id=run_id)
        return SlotRun(slot, "sent", workflow_id=run_id)

    def _statement(
        self, schedule: AnySchedule, slot: datetime, spec: WorkflowSpec[Any] | None
    ) -> Statement[Any]:
        if isinstance(schedule, TaskSchedule):
            return send_statement(self._app, schedule, slot)
        assert spec is not None, "a workflow is built before it is fired"
        return start_statement(schedule.name, slot, spec)

    def _report(self, name: str, problem: str) -> None:
        """Say what is wrong with a schedule once, not at every tick."""
        if self._said.get(name) != problem:
            self._said[name] = problem
            _logger.error("schedule %s could not be fired, it is tried again: %s", name, problem)


async def _is_held_back(
    connection: AsyncConnection[TupleRow], schedule: AnySchedule, runs: Sequence[SlotRun]
) -> bool:
    """Whether a slot is skipped for an earlier run; `runs` are those of this transaction."""
    if schedule.overlap is Overlap.ALLOW:
        return False
    if any(one.outcome == "sent" for one in runs):
        return True  # it cannot have begun before this transaction ends
    (open_count, waiting_count) = (await run(connection, open_runs(schedule.name)))[0]
    return bool(open_count if schedule.overlap is Overlap.SKIP else waiting_count)
