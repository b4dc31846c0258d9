"""The scheduler: sends the task or starts the workflow of each slot, once.

Any number of schedulers may run. A slot has an id of its own in the database, and each due schedule
is fired in one transaction that holds its state row: whoever comes second finds it done.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from horsies.config.schedules import AnySchedule, Overlap, TaskSchedule
from horsies.database.operation import FAILURES, describe
from horsies.database.statement import is_transient, run
from horsies.errors import HorsiesError
from horsies.result import Err
from horsies.scheduling.slots import config_hash, due_slots, first_slot, jitter_s, slot_id
from horsies.scheduling.statements import (
    LockedSchedule,
    SlotRun,
    due_schedules,
    init_schedules,
    lock_schedule,
    open_runs,
    record_firing,
)
from horsies.scheduling.validate import SchedulingApp
from horsies.sending.options import SendOptions
from horsies.sending.prepared import PreparedSend, SendingBroker
from horsies.sending.statements import enqueue_tasks
from horsies.workflows.definition import find_definition
from horsies.workflows.rows import rows_of
from horsies.workflows.spec import SpecBroker
from horsies.workflows.statements import start_workflows

_logger = logging.getLogger("horsies.scheduler")

_BATCH = 100
# Notifications wake; this is how long a lost one may cost.
_POLL_S = 30.0
_SLOTS_PER_TRANSACTION = 100


class SchedulerBroker(SendingBroker, SpecBroker, Protocol):
    """The part of a broker that a scheduler needs."""


class SchedulerApp(SchedulingApp, Protocol):
    """The part of an app that a scheduler needs."""

    def get_broker(self) -> SchedulerBroker: ...
    def are_sends_suppressed(self) -> bool: ...


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
        self.interval_s = self._check_interval_s

    async def initialise(self) -> None:
        """Make the state of new and changed schedules; forget those that are no longer there."""
        (due,) = await self._database.run_async(due_schedules(self._owner, _BATCH))
        now = due.now_at
        firsts = [
            (name, first_slot(schedule, now), config_hash(schedule))
            for name, schedule in self._schedules.items()
        ]
        statement = init_schedules(self._owner, firsts, list(self._schedules))
        for receipt in await self._database.run_async(statement):
            if receipt.outcome == "changed":
                _logger.warning("schedule %s has changed: its next run is anew", receipt.task_id)
            elif receipt.outcome == "taken":
                _logger.error(
                    "schedule %s belongs to another owner; it is left alone", receipt.task_id
                )
        self._is_initialised = True

    async def run_once(self) -> int:
        """Fire what is due; return how many tasks and workflows were sent."""
        if not self._is_initialised:
            await self.initialise()
        sent = 0
        while True:
            (due,) = await self._database.run_async(due_schedules(self._owner, _BATCH))
            if due.known_count < len(self._schedules):  # someone has deleted a row
                await self.initialise()
            fired = [await self._try(name) for name in due.names]
            sent += sum(fired)
            if len(due.names) < _BATCH or not any(fired):
                break
        wait_s = _POLL_S if due.next_after_s is None else float(due.next_after_s)
        # What is due but could not be fired is tried again at the next tick.
        self.interval_s = self._check_interval_s if due.names else min(_POLL_S, max(0.001, wait_s))
        return sent

    async def _try(self, name: str) -> int:
        """Fire one schedule; whatever it meets, the others go on."""
        schedule = self._schedules.get(name)
        if schedule is None:
            return 0
        try:
            return await self._fire(schedule)
        except FAILURES as error:
            if is_transient(error):
                raise
            _logger.error("schedule %s could not be fired: %s", name, describe(error))  # noqa: TRY400
        except Exception:  # user code: build_with
            _logger.exception("schedule %s could not be fired", name)
        return 0

    async def _fire(self, schedule: AnySchedule) -> int:
        async with self._database.pool.connection_async() as connection, connection.transaction():
            held = await run(connection, lock_schedule(self._owner, schedule.name))
            if not held:
                return 0  # another scheduler has it
            state = held[0]
            due = due_slots(schedule, state.next_run_at, state.now_at)
            runs = [
                await self._run(connection, schedule, slot, state)
                for slot in due.slots[:_SLOTS_PER_TRANSACTION]
            ]
            next_at = due.next_run_at
            if len(due.slots) > _SLOTS_PER_TRANSACTION:
                next_at = due.slots[_SLOTS_PER_TRANSACTION]
            if due.missed_from is not None:
                runs.append(SlotRun(due.missed_from, "missed", reason="catch_up_missed is off"))
            await run(connection, record_firing(schedule.name, next_at, runs))
            return sum(run.outcome == "sent" for run in runs)

    async def _run(
        self,
        connection: AsyncConnection[TupleRow],
        schedule: AnySchedule,
        slot: datetime,
        state: LockedSchedule,
    ) -> SlotRun:
        if schedule.overlap is not Overlap.ALLOW:
            (open_count, waiting_count) = (await run(connection, open_runs(schedule.name)))[0]
            limit_reached = (
                open_count > 0 if schedule.overlap is Overlap.SKIP else waiting_count > 0
            )
            if limit_reached:
                return SlotRun(slot, "skipped", reason="an earlier run has not ended")
        run_id = slot_id(schedule.name, slot)
        if isinstance(schedule, TaskSchedule):
            await self._send(connection, schedule, slot, run_id)
            return SlotRun(slot, "sent", task_id=run_id)
        definition = find_definition(schedule.definition_key)
        if definition is None:
            raise HorsiesError(f"workflow {schedule.definition_key!r} is not registered")
        spec = definition.build_with(self._app, **schedule.kwargs)
        await run(connection, start_workflows([rows_of(spec, run_id, slot)]))
        return SlotRun(slot, "sent", workflow_id=run_id)

    async def _send(
        self,
        connection: AsyncConnection[TupleRow],
        schedule: TaskSchedule,
        slot: datetime,
        task_id: str,
    ) -> None:
        definition = self._app.definition(schedule.task_name)
        if definition is None:
            raise HorsiesError(f"task {schedule.task_name!r} is not registered")
        deadline = schedule.deadline_seconds
        options = SendOptions(
            queue_name=schedule.queue_name,
            good_until=None if deadline is None else slot + timedelta(seconds=deadline),
        )
        prepared = PreparedSend(self._app, definition, options)
        row = prepared.row(task_id, tuple(schedule.args), dict(schedule.kwargs), slot)
        if isinstance(row, Err):
            raise HorsiesError(row.err_value.message)
        delay_s = jitter_s(schedule.name, slot, schedule.jitter_seconds)
        delayed: Any = row.ok_value._replace(delay_s=delay_s or None)
        await run(connection, enqueue_tasks([delayed]))
