"""Find stored tasks by a filter: a page of them, how many there are, one by a piece of its id."""

from dataclasses import dataclass
from datetime import datetime

from horsies.operations.filters import TaskFilter
from horsies.operations.statements import (
    FoundId,
    ListedRow,
    Search,
    count_found,
    find_ids,
    list_tasks,
)
from horsies.operations.steps import RefusedError, Steps, performed
from horsies.workflows.listing import find_workflow

COUNT_LIMIT = 10_000
_ARGUMENT_LIMIT = 2_000  # arguments are read as JSON: 30 µs each
_COUNTED_ROWS = 15_000
_NAMED_IDS = 5
_MAX_PAGE = 10_000


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A page of tasks. `next_before` is where the next page goes on; None at the end.

    `is_cut_short` says that the search stopped before the page was full: rows that match may be
    rare, so go on behind `next_before` to look further.
    """

    tasks: list[ListedRow]
    next_before: str | None
    is_cut_short: bool


@dataclass(frozen=True, slots=True)
class TaskCount:
    """How many tasks match; if `is_least`, there are that many and perhaps more."""

    number: int
    is_least: bool

    def __str__(self) -> str:
        return f"{self.number:,}{'+' if self.is_least else ''}"


def bounded(number: int, limit: int = COUNT_LIMIT) -> TaskCount:
    """The count that was read up to one more than its limit."""
    return TaskCount(min(number, limit), is_least=number > limit)


@dataclass(frozen=True, slots=True)
class IdPage:
    ids: list[str]
    next_before: str | None


def page_steps(wanted: TaskFilter, limit: int, before: str | None) -> Steps[TaskPage]:
    """Newest first: by birth, or by claim or end if all wanted states are in flight or ended."""
    if not 1 <= limit <= _MAX_PAGE:
        raise RefusedError(f"a page has 1 to {_MAX_PAGE:,} tasks, not {limit:,}")
    rows: list[ListedRow] = yield list_tasks(_search(wanted, limit + 1, before))
    found = [row for row in rows if row.is_match]
    is_full = len(found) > limit
    last = found[limit - 1] if is_full else next((row for row in rows if not row.is_match), None)
    return TaskPage(found[:limit], last and _cursor(last), last is not None and not is_full)


def ids_steps(wanted: TaskFilter, limit: int, before: str | None) -> Steps[IdPage]:
    """As `page_steps`, but only ids, and never nodes: they follow their workflow."""
    rows: list[FoundId] = yield find_ids(_search(wanted, limit, before, is_plain=True))
    ids = [row.id for row in rows if row.is_match]
    is_over = len(ids) < limit and len(ids) == len(rows)
    return IdPage(ids, None if is_over else _cursor(rows[-1]))


def count_steps(wanted: TaskFilter, *, is_plain: bool = False) -> Steps[TaskCount]:
    """Count up to a limit: a count of millions would hold up those who wait for it."""
    limit = _ARGUMENT_LIMIT if wanted.arguments else COUNT_LIMIT
    search = Search(wanted, limit + 1, examine_limit=_COUNTED_ROWS, is_plain=is_plain)
    ((number, is_cut_short),) = yield count_found(search)
    if number > limit:
        return TaskCount(limit, is_least=True)
    return TaskCount(number, is_least=is_cut_short)


def whole_id_steps(prefix: str) -> Steps[str]:
    """The one id that begins like this."""
    rows: list[FoundId] = yield find_ids(Search(TaskFilter(id_prefix=prefix), _NAMED_IDS + 1))
    return _only(prefix, sorted(row.id for row in rows if row.is_match), "task")


def whole_workflow_id_steps(prefix: str) -> Steps[str]:
    """The one id of a workflow that begins like this."""
    return _only(prefix, (yield from performed(find_workflow(prefix))), "workflow")


def _only(prefix: str, ids: list[str], kind: str) -> str:
    if prefix in ids or len(ids) == 1:
        return prefix if prefix in ids else ids[0]
    if not ids:
        raise RefusedError(f"there is no {kind} {prefix}")
    named = "".join(f"\n  {one}" for one in ids[:_NAMED_IDS])
    more = "\n  and more" if len(ids) > _NAMED_IDS else ""
    raise RefusedError(f"{prefix} is the beginning of several ids:{named}{more}")


def _search(
    wanted: TaskFilter, limit: int, before: str | None, *, is_plain: bool = False
) -> Search:
    if before is None:
        return Search(wanted, limit, is_plain=is_plain)
    instant, comma, task_id = before.partition(",")
    if wanted.walk == "id" or (wanted.walk == "made" and not comma):
        return Search(wanted, limit, None, before, is_plain=is_plain)
    try:
        datetime.fromisoformat(instant)
    except ValueError:
        comma = ""
    if not comma:
        raise RefusedError(
            f"{before!r} is not where a page of these tasks ended; "
            "give `before` as the last page said it, with the same filter"
        )
    return Search(wanted, limit, instant, task_id, is_plain=is_plain)


def _cursor(row: FoundId | ListedRow) -> str:
    return row.id if row.reached_at is None else f"{row.reached_at.isoformat()},{row.id}"
