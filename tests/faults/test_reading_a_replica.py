"""Operators look at a standby: all that only reads works there, and nothing else is tried."""

import pytest

from horsies import Horsies, TaskFilter
from horsies.operations.metrics import system_families
from support.apps import bad, good, make_app
from support.database import connect
from support.eventually import eventually
from support.replication import ReplicatedCluster
from support.scenes import WORKER, plant_shop, task_id

pytestmark = [pytest.mark.faults, pytest.mark.slow]


@pytest.fixture
def app(replicated_cluster: ReplicatedCluster) -> Horsies:
    """An app that knows the standby only; the shop was planted on the primary."""
    owner = make_app(replicated_cluster.primary_url)
    good(owner.operations.status())  # creates the tables
    owner.close()
    db = connect(replicated_cluster.primary_url)
    plant_shop(db)
    last = db.value("select pg_current_wal_lsn()")
    db.connection.close()
    standby = connect(replicated_cluster.standby_url)
    eventually(lambda: standby.value("select pg_last_wal_replay_lsn() >= %s::pg_lsn", last))
    standby.connection.close()
    return make_app(replicated_cluster.standby_url)


def test_everything_that_looks_works_on_a_replica(app: Horsies) -> None:
    operations = app.operations
    failed = TaskFilter(statuses=("FAILED",))

    page = good(operations.tasks(failed))
    detail = good(operations.task(task_id(40)))
    queues = {queue.name: queue for queue in good(operations.queues())}
    (worker,) = good(operations.workers())
    why = good(operations.why(task_id(41)))
    findings = good(operations.doctor())

    assert len(page.tasks) == good(operations.count(failed)).number == 4
    assert (detail.info.error_code, len(detail.logs)) == ("CARD_DECLINED", 1)
    assert queues["mail"].later.number + queues["mail"].due.number == 3
    assert worker.snapshot.worker_id == WORKER
    assert why.reasons
    assert isinstance(findings, list)
    assert system_families(good(operations.status()))
    assert good(operations.task_stats()) is not None
    assert good(operations.workflows()).workflows == []
    assert good(operations.audit()) == []
    assert good(operations.find_id(task_id(40)[:8])) == task_id(40)
    assert good(app.get_broker().get_task_info(task_id(40))) is not None
    app.close()


def test_steering_through_a_replica_is_refused_with_the_reason(app: Horsies) -> None:
    refused = bad(app.operations.cancel(task_id(41)))

    assert "read-only" in refused.message
    app.close()
