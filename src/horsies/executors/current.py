"""The call that runs in this thread or coroutine: the only context variable of the executors."""

from contextvars import ContextVar

from horsies.executors.base import Call

_current: ContextVar[Call | None] = ContextVar("horsies_current_call", default=None)


def enter(call: Call) -> None:
    """Say which call begins here."""
    _current.set(call)


def current_call() -> Call | None:
    """The attempt whose user code asks, or `None` outside of one."""
    return _current.get()
