"""No statement that a worker repeats for all raises, whatever rows the schema has admitted."""

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horsies.recovery import statements as recovery
from horsies.workflows import statements as workflows
from support.database import Database, connect
from support.odd_rows import VALUES, columns_of, insert_copy, plant

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(600)]

EXAMPLES = int(os.environ.get("HORSIES_FAULT_EXAMPLES", "40"))
# What users, applications and other releases write.
TABLES = (
    "horsies_tasks", "horsies_task_attempts", "horsies_heartbeats", "horsies_events",
    "horsies_workflows", "horsies_workflow_tasks", "horsies_worker_states",
    "horsies_worker_permits", "horsies_queue_controls", "horsies_duties",
)  # fmt: skip
HOUR = timedelta(hours=1)
STATEMENTS = {
    "wake": workflows.wake_nodes(100),
    "recover workflows": recovery.recover_workflows(""),
    "claim a child": workflows.claim_subworkflows(["key"], HOUR, 100),
    "orphans": workflows.orphan_subworkflows(["key"], 100),
    "expire": recovery.expire_tasks(),
    "requeue stale claims": recovery.requeue_stale_claims(HOUR, []),
    "lost runs": recovery.lost_runs(timedelta(seconds=1)),
    "watch": recovery.watch_workers(None, None),
    "history": recovery.record_history(),
    "take duties": recovery.take_duties("w", {"recover workflows": HOUR}),
    "unheld": recovery.return_unheld_tasks("sound", []),
    "prune tasks": recovery.prune_tasks("COMPLETED", timedelta()),
    **{
        f"prune {what}": recovery.prune(what, timedelta())
        for what in ("heartbeats", "worker_states", "workflows", "events", "schedule_runs")
    },
}


@pytest.fixture
def planted(database_url: str) -> Iterator[Database]:
    database = connect(database_url)
    plant(database)
    yield database
    database.connection.close()


@given(st.data())
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_statements_for_all_pass_over_any_row(planted: Database, data: st.DataObject) -> None:
    """A few odd rows at once, each with a few odd columns; then everything a worker asks."""
    with planted.connection.transaction(force_rollback=True):
        for _ in range(data.draw(st.integers(1, 4), label="rows")):
            table = data.draw(st.sampled_from(TABLES), label="table")
            changes = data.draw(_changes(planted, table), label="changes")
            with planted.connection.transaction() as insertion:
                if not insert_copy(planted, table, changes):
                    raise psycopg.Rollback(insertion)  # the schema does not take it
        for name, statement in STATEMENTS.items():
            answers = planted.run(statement)
            for answer in answers:
                assert "bug" not in str(getattr(answer, "failure", "")), name
        planted.claim(100)


def _changes(db: Database, table: str) -> st.SearchStrategy[dict[str, Any]]:
    odd = {one.name: st.sampled_from((*VALUES[one.kind], None)) for one in columns_of(db, table)}
    names = st.lists(st.sampled_from(sorted(odd)), min_size=1, max_size=4, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: odd[name] for name in chosen}))
