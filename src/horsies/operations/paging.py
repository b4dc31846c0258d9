"""Operations on all tasks that match a filter, a page of ids at a time."""

from collections.abc import Callable

from horsies.operations.filters import TaskFilter
from horsies.operations.listing import IdPage, ids_steps
from horsies.operations.steps import Steps

_PAGE = 1_000


def exact_count_steps(wanted: TaskFilter) -> Steps[int]:
    """Count all plain tasks that match, page by page, however many there are."""
    total, before = 0, None
    while True:
        page: IdPage = yield from ids_steps(wanted, 10 * _PAGE, before)
        total, before = total + len(page.ids), page.next_before
        if before is None:
            return total


def for_all_matching(wanted: TaskFilter, change: Callable[[list[str]], Steps[int]]) -> Steps[int]:
    """Change page after page; return how many tasks were changed.

    Pages go strictly back in time, so what is changed is not met again.
    """
    total, before = 0, None
    while True:
        page: IdPage = yield from ids_steps(wanted, _PAGE, before)
        if page.ids:
            total += yield from change(page.ids)
        before = page.next_before
        if before is None:
            return total
