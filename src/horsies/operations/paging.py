"""Operations on all tasks that match a filter, a page of ids at a time."""

from collections.abc import Callable

from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.database.operation import Operation
from horsies.database.statement import Receipt, Scalar
from horsies.operations.filters import TaskFilter
from horsies.operations.statements import count_matching, matching_ids
from horsies.result import Err, Ok
from horsies.result.broker import BrokerResult


def count(wanted: TaskFilter) -> Operation[Scalar, int]:
    """Count the tasks that match a filter."""
    return Operation(
        count_matching(wanted), lambda rows: int(rows[0].value), BrokerErrorCode.CLEANUP_FAILED
    )


def for_all_matching(
    database: Database,
    wanted: TaskFilter,
    change: Callable[[list[str]], Operation[Receipt, int]],
) -> BrokerResult[int]:
    """Change page after page; return how many tasks were changed."""
    total, after = 0, ""
    while True:
        page = database.perform(_page(wanted, after))
        if isinstance(page, Err):
            return page
        if not page.ok_value:
            return Ok(total)
        changed = database.perform(change(page.ok_value))
        if isinstance(changed, Err):
            return changed
        total, after = total + changed.ok_value, page.ok_value[-1]


def _page(wanted: TaskFilter, after: str) -> Operation[Scalar, list[str]]:
    return Operation(
        matching_ids(wanted, after=after),
        lambda rows: [row.value for row in rows],
        BrokerErrorCode.CLEANUP_FAILED,
    )
