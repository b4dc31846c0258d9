"""Keeps how queues fare over time, in steps that charts can show at once."""

import logging
from datetime import timedelta

import psycopg

from horsies.database.verdict import is_transient
from horsies.recovery.duties import Duty
from horsies.recovery.lost_runs import Connection
from horsies.recovery.statements import record_history

_logger = logging.getLogger("horsies.worker")
_PASSES = 10  # ten minutes of what was missed


class QueueHistory:
    """Each worker has one; the one that takes the duty records for all."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_logged = False

    def duty(self) -> Duty:
        return Duty("record queue history", timedelta(seconds=10), self.run_once)

    async def run_once(self) -> int:
        """Record what has happened since the last pass; how many statements that took."""
        try:
            return await self._record()
        except psycopg.Error as error:
            # Without rights on the new table, say: charts stay empty, but tasks must run.
            if is_transient(error):
                raise
            if not self._is_logged:
                _logger.warning("the history of queues cannot be recorded: %s", error)
            self._is_logged = True
            return 0

    async def _record(self) -> int:
        for number in range(_PASSES):
            ((is_present,),) = await self._connection.run(record_history())
            if is_present:
                return number + 1
        return _PASSES
