"""The process and thread that run user code, as they were before they ran any."""

import os
import sys
from typing import TYPE_CHECKING

from horsies.executors.base import BegunMarks, Call, Definitions
from horsies.executors.middleware import Middleware

if TYPE_CHECKING:
    from horsies.observability.spans import AttemptSpan


class Host:
    """Make it in the thread that will run user code, before it does."""

    __slots__ = (
        "_is_left_out", "_profile", "_trace", "begun", "is_copy", "middleware", "worker_id"
    )  # fmt: skip

    def __init__(self, definitions: Definitions | None = None) -> None:
        self.begun: BegunMarks | None = None if definitions is None else definitions.begun
        self.middleware = Middleware() if definitions is None else definitions.middleware
        self.worker_id = "" if definitions is None else definitions.worker_id
        self._is_left_out = False  # of traces, but for what a span is made for
        self.is_copy = False  # whether user code has forked the process in which this is read
        os.register_at_fork(after_in_child=self._become_copy)
        self._trace = sys.gettrace()
        self._profile = sys.getprofile()

    def leave_out(self) -> None:
        """Leave the context of all calls out of traces: most of them need no more than that."""
        if self.middleware.tracing is not None:
            self.middleware.tracing.leave_out()
            self._is_left_out = True

    def begin_span(self, call: Call, now: float) -> "AttemptSpan | None":
        """The span of an attempt that begins here, if the app traces."""
        tracing = self.middleware.tracing
        if tracing is None:
            return None
        return tracing.begin(call, self.worker_id, now, is_left_out=self._is_left_out)

    def left(self, span: "AttemptSpan | None") -> None:
        """End the span of user code that has ended, and what it may have left behind."""
        self._restore_tracing()
        if span is not None:
            span.end()

    def _restore_tracing(self) -> None:
        """Undo sys.settrace and sys.setprofile of a task: its functions must not run in ours."""
        if sys.gettrace() is not self._trace:
            sys.settrace(self._trace)
        if sys.getprofile() is not self._profile:
            sys.setprofile(self._profile)

    def _become_copy(self) -> None:
        self.is_copy = True
