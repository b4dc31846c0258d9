"""Gives back what statements whose answers were lost may have taken: none of it ever ran."""

import logging

from horsies.clock import monotonic
from horsies.recovery.statements import return_unheld_tasks
from horsies.worker.holdings import Holdings
from horsies.worker.service_connection import SERVER_LIMIT_S, ServiceConnection

_logger = logging.getLogger("horsies.worker")
# How often to look for rows that another session has locked, or that may come late.
_AGAIN_S = 1.0


class LostClaims:
    """Whether the database may hold tasks for this worker that it does not know of."""

    def __init__(self, connection: ServiceConnection, holdings: Holdings, owner_id: str) -> None:
        self._connection = connection
        self._holdings = holdings
        self._owner_id = owner_id
        # Until an answer is here, what was started or claimed is known to the database alone.
        self.is_answer_missing = False
        self.again_at: float | None = None
        self._late_until = 0.0

    def __bool__(self) -> bool:
        return self.is_answer_missing or self.again_at is not None

    @property
    def is_due(self) -> bool:
        return self.is_answer_missing or (
            self.again_at is not None and monotonic() >= self.again_at
        )

    async def give_back(self) -> None:
        """Return what nobody holds.

        Rows that another session has locked are tried again later; claiming does not wait for them.
        Behind a pooler the statement itself may come late, within the limit of the server.
        """
        is_certain = await self._connection.end_lost_backend()
        if self.is_answer_missing and not is_certain:
            self._late_until = monotonic() + SERVER_LIMIT_S
        statement = return_unheld_tasks(self._owner_id, self._holdings.task_ids())
        (unheld,) = await self._connection.run(statement)
        self.is_answer_missing = False
        is_settled = not unheld.remaining and monotonic() >= self._late_until
        self.again_at = None if is_settled else monotonic() + _AGAIN_S
        if unheld.returned:
            _logger.warning(
                "gave back %d tasks claimed by a statement whose answer was lost", unheld.returned
            )
