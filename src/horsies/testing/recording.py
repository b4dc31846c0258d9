"""An enqueuer that remembers what it stores."""

from collections.abc import Iterator, Sequence

from horsies.database.database import Database
from horsies.database.statement import Receipt
from horsies.sending.enqueuer import Enqueuer, EnqueueResult
from horsies.sending.rows import NewTask
from horsies.testing.sends import Sends


class RecordingEnqueuer(Enqueuer):
    """Stores rows in the database of a test, as always, and records them."""

    def __init__(self, database: Database, sends: Sends) -> None:
        super().__init__(database)
        self._sends = sends

    def enqueue(self, row: NewTask) -> EnqueueResult:
        self._sends.add(row)
        return super().enqueue(row)

    async def enqueue_async(self, row: NewTask) -> EnqueueResult:
        self._sends.add(row)
        return await super().enqueue_async(row)

    def copy(self, rows: Iterator[NewTask]) -> list[str]:
        return super().copy(self._recorded(rows))

    def enqueue_all(self, rows: Sequence[NewTask]) -> list[Receipt]:
        return super().enqueue_all(list(self._recorded(iter(rows))))

    def _recorded(self, rows: Iterator[NewTask]) -> Iterator[NewTask]:
        for row in rows:
            self._sends.add(row)
            yield row
