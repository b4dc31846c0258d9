"""The retries that a worker remembers to announce."""

from horsies.config import PostgresConfig
from horsies.config.resilience import WorkerResilienceConfig
from horsies.database.database import Database
from horsies.worker.retry_notifier import RetryNotifier
from horsies.worker.service_connection import ServiceConnection


def test_what_is_remembered_does_not_grow_with_what_has_failed() -> None:
    database = Database(PostgresConfig(database_url="postgresql://nowhere/none"))
    notifier = RetryNotifier(
        ServiceConnection(database.address, "never connects", WorkerResilienceConfig())
    )

    for number in range(10_100):
        notifier.add(str(number), "default", 3600.0)

    assert len(notifier._due) == 10_000
