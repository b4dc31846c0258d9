"""How a task can fail without an exception of its own, as `TaskError.exception_class` names it."""


class WorkerCrashed(Exception):  # noqa: N818 - says what happened, as the other three do
    """The process that ran the task ended without a result."""


class TaskTimeout(Exception):  # noqa: N818
    """The task ran longer than its limit."""


class TaskCancelled(Exception):  # noqa: N818
    """Someone cancelled the task."""


class TaskExpired(Exception):  # noqa: N818
    """The task had not started at its deadline."""
