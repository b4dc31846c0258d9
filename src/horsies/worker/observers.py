"""Who is told what happens to the tasks of a worker: its log, the app's hooks, its metrics."""

from collections.abc import Sequence

from horsies.app import Horsies
from horsies.recovery.statements import NamedTask
from horsies.worker.completer import Recorded
from horsies.worker.held_task import HeldTask
from horsies.worker.hook_calls import HookCalls
from horsies.worker.metrics import WorkerMetrics
from horsies.worker.settings import WorkerContext
from horsies.worker.task_log import TaskLog


class Observers:
    """Hands on what happens; each of them that is off costs a look."""

    def __init__(self, app: Horsies, context: WorkerContext) -> None:
        settings = context.settings
        self.task_log = TaskLog(settings.logged_tasks)
        self.hook_calls = HookCalls(app.on, context.identity.worker_id)
        self.started = self.hook_calls.started  # without a frame between: every task passes here
        self.metrics = WorkerMetrics(context, app.list_tasks()) if settings.has_metrics else None

    def claimed(self, tasks: Sequence[HeldTask]) -> None:
        if self.metrics is not None:
            self.metrics.claimed(tasks)

    def recorded(self, ended: Sequence[Recorded]) -> None:
        self.task_log.record(ended)
        self.hook_calls.recorded(ended)
        if self.metrics is not None:
            self.metrics.recorded(ended)

    def expired(self, task: HeldTask | NamedTask) -> None:
        self.hook_calls.expired(task)

    def loop_lagged(self, seconds: float) -> None:
        if self.metrics is not None:
            self.metrics.loop_lags.observe(seconds)
