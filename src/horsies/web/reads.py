"""What pages read, shared by all who look: the database answers each question once per tick."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from horsies.clock import monotonic

T = TypeVar("T")
_KEPT = 500


@dataclass(slots=True)
class _Answer:
    """The last answer to one question; whoever holds the lock asks it anew."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    value: Any = None
    asked_at: float = float("-inf")
    read_at: float = float("-inf")


class Reads:
    """Answers that are as old as one tick at most, however many browsers are open."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self._changed_at = float("-inf")
        self._answers: dict[Hashable, _Answer] = {}

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]], *, age_s: float = 0) -> T:
        """The answer to `key`; it may be a tick old, or `age_s` if that is longer.

        Within a tick it is asked anew after a change: nobody tells of that change a second time.
        Those who come while someone asks wait for that answer. If the one who asks goes away,
        the next one asks.
        """
        answer = self._answers.get(key)
        if answer is None:
            self._forget_old()
            answer = self._answers.setdefault(key, _Answer())
        async with answer.lock:
            if self._is_old(answer, age_s):
                asked_at = monotonic()
                answer.value = await ask()
                answer.asked_at, answer.read_at = asked_at, monotonic()
            value: T = answer.value
            return value

    def _is_old(self, answer: _Answer, age_s: float) -> bool:
        if age_s <= self._tick_s and answer.asked_at < self._changed_at:
            return True
        return monotonic() - answer.read_at >= max(self._tick_s, age_s)

    def heard_of_change(self) -> None:
        """Pages are told now that something has changed, and will ask."""
        self._changed_at = monotonic()

    def clear(self) -> None:
        """Ask everything anew: someone has just changed something and wants to see it."""
        for answer in self._answers.values():
            answer.read_at = float("-inf")

    def _forget_old(self) -> None:
        if len(self._answers) < _KEPT:
            return
        oldest = sorted(self._answers, key=lambda key: self._answers[key].read_at)
        for key in oldest[: _KEPT // 2]:
            if not self._answers[key].lock.locked():
                del self._answers[key]
