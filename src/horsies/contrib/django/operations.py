"""`app.operations` of a Django project: what it changes belongs to Django's own transaction."""

from typing import TypeVar

from django.db import connections, transaction

from horsies.codes import BrokerErrorCode
from horsies.contrib.django.conf import setting
from horsies.database.statement import Statement
from horsies.database.user_connection import run_on
from horsies.operations.cancel import CancelledTasks
from horsies.operations.operations import Operations
from horsies.operations.steps import Steps, perform
from horsies.result.broker import BrokerResult

T = TypeVar("T")
Row = TypeVar("Row")


class ProjectOperations(Operations):
    """Performs blocking changes on Django's connection, with their line in the audit.

    Hooks hear of them when the transaction has committed. What the database refuses is raised, as
    by the ORM: the transaction is broken then. Reading and the `_async` twins use the engine's
    own connections.
    """

    def _change(self, steps: Steps[T]) -> BrokerResult[T]:
        return perform(DjangoConnection(), steps, BrokerErrorCode.CLEANUP_FAILED)

    def _tell(self, told: CancelledTasks) -> None:
        transaction.on_commit(told.tell, using=setting("DATABASE_ALIAS"))


class DjangoConnection:
    """Performs the engine's statements inside whatever transaction Django's connection is in."""

    def ensure_schema(self) -> None:
        """Django's migrations make the tables."""

    def run(self, statement: Statement[Row], /) -> list[Row]:
        return run_on(connections[setting("DATABASE_ALIAS")], statement, None, "run")
