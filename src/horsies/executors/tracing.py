"""The trace and profile functions of a thread, kept from one task to the next.

A trace function of a task must not run in our code, where it may raise, nor in the next task.
"""

import sys


class Tracing:
    """What was set when this was made, such as a debugger; `restore` undoes what a task has set."""

    __slots__ = ("_profile", "_trace")

    def __init__(self) -> None:
        self._trace = sys.gettrace()
        self._profile = sys.getprofile()

    def restore(self) -> None:
        """Set again, in the same thread, what was set at first."""
        if sys.gettrace() is not self._trace:
            sys.settrace(self._trace)
        if sys.getprofile() is not self._profile:
            sys.setprofile(self._profile)
