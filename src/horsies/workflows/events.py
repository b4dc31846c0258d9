"""Events from outside that a workflow can wait for, and the names an app knows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from horsies.errors import WorkflowValidationError
from horsies.workflows.nodes import AnyNode, EventNode, is_short_text

T = TypeVar("T")


@dataclass(frozen=True)  # no slots: `Event[...](...)` sets __orig_class__
class Event(Generic[T]):
    """A named event with a typed payload; `app.event(name, type)` makes it."""

    name: str
    payload_type: Any

    def node(
        self,
        *,
        key: str,
        timeout: timedelta | None = None,
        waits_for: Sequence[AnyNode] | None = None,
        node_id: str | None = None,
    ) -> EventNode[T]:
        """A node that ends when `app.send_event(name, key, payload)` is called, before or after.

        Without an event within `timeout` the node fails.
        """
        return EventNode(self, key, timeout, list(waits_for or ()), node_id=node_id)


class EventRegistry:
    """The events of one app, by name."""

    def __init__(self) -> None:
        self._events: dict[str, Event[Any]] = {}

    @property
    def by_name(self) -> Mapping[str, Event[Any]]:
        return MappingProxyType(self._events)

    def register(self, name: str, payload_type: Any) -> Event[Any]:
        """Return the event of this name; a second type for it is an error."""
        if not is_short_text(name):
            raise _refusal(f"an event needs a name of 1 to 255 characters, got {name!r}")
        known = self._events.setdefault(name, Event(name, payload_type))
        if known.payload_type != payload_type:
            raise _refusal(
                f"event {name!r} is already defined with another payload type"
            ).with_note(f"first {known.payload_type!r}, now {payload_type!r}")
        return known


def _refusal(message: str) -> WorkflowValidationError:
    return WorkflowValidationError(
        message,
        help_text='define each event once: paid = app.event("paid", Payment)',
    )
