"""The statements by which users steer stored tasks and ask whether the server is there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from psycopg.types.json import Jsonb as Json
from pydantic_core import to_json

from horsies.database.functions import call
from horsies.database.loading import fitted
from horsies.database.sql_files import query
from horsies.database.statement import Receipt, Scalar, Statement
from horsies.operations.filters import TaskFilter
from horsies.results.statements import stored_progress
from horsies.results.task_info import TaskProgress

# Among a million rows 10,000 are examined in 15 to 50 ms: no page is slow, rare as matches may be.
EXAMINE_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Search:
    """A filter, where to go on, and how far."""

    wanted: TaskFilter
    match_limit: int
    before_at: str | None = None
    before_id: str | None = None
    examine_limit: int = EXAMINE_LIMIT
    is_plain: bool = False

    def parameters(self) -> dict[str, object]:
        return {
            "wanted": Json(self.wanted.wanted(is_plain=self.is_plain), dumps=to_json),
            "walk": self.wanted.walk,
            "before_at": self.before_at or "infinity",
            "before_id": self.before_id or self.wanted.before_id,
            "match_limit": self.match_limit,
            "examine_limit": self.examine_limit,
        }


class FoundId(NamedTuple):
    """A task that matches; or, not a match, the last one that was examined."""

    is_match: bool
    reached_at: datetime | None
    id: str


class FoundCount(NamedTuple):
    match_count: int
    is_cut_short: bool


class ListedRow(NamedTuple):
    """A row of a list; one that is no match has only the place where the search stopped."""

    is_match: bool
    reached_at: datetime | None
    id: str
    task_name: str
    queue_name: str
    status: str
    priority: int
    retry_count: int
    max_retries: int
    sent_at: datetime | None
    enqueued_at: datetime | None
    next_retry_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    error_code: str | None
    worker_id: str | None
    worker_hostname: str | None
    worker_pid: int | None
    is_workflow_task: bool
    tags: list[str] | None
    read_at: datetime
    progress: TaskProgress | None


class Ping(NamedTuple):
    database_time: datetime
    server_version: str


def cancel_tasks(task_ids: Sequence[str]) -> Statement[Receipt]:
    """T14."""
    return call("cancel_tasks", Receipt, task_ids=sorted(task_ids))


def request_cancel(task_ids: Sequence[str]) -> Statement[Receipt]:
    """T14 for waiting tasks; for running ones the wish is stored and their worker told."""
    return call("request_cancel", Receipt, task_ids=sorted(task_ids))


def requeue_tasks(task_ids: Sequence[str], *, include_completed: bool) -> Statement[Receipt]:
    """T15. Repeated, it would say of a task that it has put back that it is not ended."""
    statement = call(
        "requeue_tasks", Receipt, task_ids=sorted(task_ids), include_completed=include_completed
    )
    return replace(statement, may_repeat=False)


def rerun_task(
    task_id: str, new_id: str, sent_at: datetime, good_until: datetime | None
) -> Statement[Scalar]:
    """A new row with the input of an ended one."""
    return call(
        "rerun_task",
        Scalar,
        ended_id=task_id,
        new_id=new_id,
        sent_at=sent_at,
        good_until=good_until,
    )


def find_ids(search: Search) -> Statement[FoundId]:
    """A page of ids that match, and where the search stopped."""
    return Statement(query("operations", "find_ids"), search.parameters(), FoundId)


def list_tasks(search: Search) -> Statement[ListedRow]:
    """The same with what a list shows of each task."""
    return Statement(query("operations", "list_tasks"), search.parameters(), _listed_row)


def _listed_row(*columns: Any) -> ListedRow:
    row = ListedRow._make((*columns[:-5], stored_progress(*columns[-5:])))
    return row._replace(tags=fitted(row.tags, list[str] | None))


def count_found(search: Search) -> Statement[FoundCount]:
    """How many match, up to the limits of the search."""
    return Statement(query("operations", "count_found"), search.parameters(), FoundCount)


def ping() -> Statement[Ping]:
    return Statement(query("operations", "ping"), {}, Ping)
