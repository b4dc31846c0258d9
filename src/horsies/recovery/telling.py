"""What hooks are told of runs that recovery ends in place of their worker."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from horsies.codec.results import UNTYPED, read_result
from horsies.database.statement import Receipt
from horsies.observability.events import CancelledEvent, EventName, FailedEvent, RetriedEvent
from horsies.observability.hooks import EventHooks
from horsies.recovery.statements import LostRunEnding, NamedTask

Tell: TypeAlias = Callable[[EventName, object], None]
_TOLD: tuple[EventName, ...] = ("failed", "retried", "cancelled")


def has_listeners(hooks: EventHooks) -> bool:
    """Whether anyone wants to know how lost runs end."""
    return any(hooks.of(name) for name in _TOLD)


def tell_of_lost_runs(
    tell: Tell,
    names: Mapping[str, NamedTask],
    endings: Sequence[LostRunEnding],
    receipts: Sequence[Receipt],
) -> None:
    """Tell of each run that these receipts say has ended; its worker is the one that was lost."""
    outcomes = {receipt.task_id: receipt.outcome for receipt in receipts}
    for ending in endings:
        run, outcome = ending.run, outcomes.get(ending.run.id)
        if outcome not in _TOLD or run.id not in names:
            continue
        task_id, name, queue = names[run.id]
        attempt = (task_id, name, queue, run.attempt, run.owner_id or "")
        if outcome == "cancelled":
            tell("cancelled", CancelledEvent(*attempt))
            continue
        error = read_result(ending.result, UNTYPED).err_value
        if outcome == "failed":
            tell("failed", FailedEvent(*attempt, None, error))
        else:
            tell("retried", RetriedEvent(*attempt, None, error, ending.retry_delay_s))
