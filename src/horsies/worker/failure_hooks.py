"""Tells the app's failure hooks of tasks that have failed for good."""

import logging
from collections.abc import Sequence

from horsies.app import FailureHook
from horsies.codec.results import UNTYPED, read_result
from horsies.worker.completer import Recorded

_logger = logging.getLogger("horsies.worker")


def call_failure_hooks(hooks: Sequence[FailureHook], failed: Recorded) -> None:
    """Call every hook, after the commit; one that raises changes nothing."""
    if not hooks:
        return
    task = failed.completion.task
    error = read_result(failed.completion.result, UNTYPED).err_value
    for hook in hooks:
        try:
            hook(task_id=task.task_id, task_name=task.task_name, attempt=task.attempt, error=error)
        except Exception:  # user code: failure hooks
            _logger.exception("a failure hook raised; the failure of task %s stands", task.task_id)
