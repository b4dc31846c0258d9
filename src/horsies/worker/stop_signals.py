"""The signals that stop a worker, handled from before its event loop runs: none is lost."""

import signal
from collections.abc import Callable, Sequence
from types import FrameType


class StopSignals:
    """Counts signals and hands each to whoever can be stopped at the time.

    Python's own handlers, not the loop's: they run between two steps of whatever blocks the loop.
    """

    def __init__(self, signals: Sequence[signal.Signals]) -> None:
        self.count = 0
        self._signals = signals
        self._stop: Callable[[], object] | None = None
        for number in signals:
            signal.signal(number, self._on_signal)

    def hand_to(self, stop: Callable[[], object] | None) -> None:
        """Call `stop` at each signal from now on, and now if one has come before."""
        self._stop = stop
        if self.count and stop is not None:
            stop()

    def ignore(self) -> None:
        """All is done: a signal that is sent once more must not end us with its own code."""
        for number in self._signals:
            signal.signal(number, signal.SIG_IGN)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self._stop is not None:
            self._stop()
