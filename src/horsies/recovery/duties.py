"""What one worker does for all: a duty is taken by one worker, and is due again an interval later.

Without this every worker would sweep, count and prune as often as asked, and the cost of a fleet
would grow with its size. The table horsies_duties says who did what when.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from horsies.database.operation import describe
from horsies.database.verdict import is_transient
from horsies.recovery.lost_runs import Connection
from horsies.recovery.statements import finish_duty, take_duties

_logger = logging.getLogger("horsies.reaper")


@dataclass(frozen=True, slots=True)
class Duty:
    """Something to be done by any worker once per interval."""

    name: str
    every: timedelta
    run: Callable[[], Awaitable[object]]

    async def attempt(self) -> str | None:
        """Do it; a failure is logged and returned, so that it stops no other duty."""
        try:
            await self.run()
        except Exception as error:  # the service loop: the next pass tries again
            if is_transient(error):
                _logger.warning("could not %s, the next pass tries again: %s", self.name, error)
            else:
                _logger.exception("could not %s, the next pass tries again", self.name)
            return describe(error)
        return None


class DutyRounds:
    """Takes the duties that are due, and does them one after the other."""

    name = "duties"

    def __init__(self, connection: Connection, worker_id: str, duties: Sequence[Duty]) -> None:
        self._connection = connection
        self._worker_id = worker_id
        self._duties = {duty.name: duty for duty in duties}
        self.interval_s = min(duty.every for duty in duties).total_seconds()

    async def run_once(self) -> list[str]:
        """One round; return the names of the duties that this worker did."""
        intervals = {name: duty.every for name, duty in self._duties.items()}
        taken = await self._connection.run(take_duties(self._worker_id, intervals))
        names = {row.value for row in taken}
        mine = [duty for name, duty in self._duties.items() if name in names]
        for duty in mine:
            failure = await duty.attempt()
            await self._connection.run(finish_duty(self._worker_id, duty.name, failure))
        return [duty.name for duty in mine]
