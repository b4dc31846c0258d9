"""Is everything there that background work needs? For commands, load balancers and monitors."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import Error, connections
from django.db.models import Min
from django.utils import timezone

from horsies.contrib.django.conf import setting
from horsies.contrib.django.models import Task, WorkerState
from horsies.contrib.django.project import app
from horsies.contrib.django.schema import pending_migrations
from horsies.result import Err

# Workers leave a snapshot every five seconds; one that has missed six is not counted.
STALE_AFTER = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Health:
    """What was found; `problems` is empty when all is well."""

    workers: int = 0
    backlog: int = 0
    lag_s: float = 0.0
    problems: list[str] = field(default_factory=list[str])

    @property
    def is_healthy(self) -> bool:
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        return {
            "status": "ok" if self.is_healthy else "error",
            "workers": self.workers,
            "backlog": self.backlog,
            "lag_seconds": round(self.lag_s, 3),
            "problems": self.problems,
        }


def check_health(
    *, max_backlog: int | None = None, max_lag_s: float | None = None, timeout_s: float = 1.0
) -> Health:
    """Ask database, migrations and workers; compare what waits with the limits."""
    alias = setting("DATABASE_ALIAS")
    try:
        pending = pending_migrations(alias)
        if pending:
            return Health(problems=[f"the database lacks {', '.join(pending)}"])
        now = timezone.now()
        due = Task.objects.using(alias).pending().filter(enqueued_at__lte=now)
        backlog = due.count()
        oldest = due.aggregate(oldest=Min("enqueued_at"))["oldest"]
    except Error as error:
        connections[alias].close_if_unusable_or_obsolete()
        return Health(problems=[f"the database does not answer: {error}"])
    lag_s = 0.0 if oldest is None else (now - oldest).total_seconds()
    workers = count_workers(timeout_s)
    problems: list[str] = []
    if not workers:
        problems.append("no worker answers")
    if max_backlog is not None and backlog > max_backlog:
        problems.append(f"{backlog} tasks wait, more than {max_backlog}")
    if max_lag_s is not None and lag_s > max_lag_s:
        problems.append(f"the oldest task waits for {lag_s:.0f} s, more than {max_lag_s:g}")
    return Health(workers, backlog, lag_s, problems)


def count_workers(timeout_s: float) -> int:
    """How many workers answer a ping."""
    answers = app.get_broker().ping_workers(int(timeout_s * 1000))
    return 0 if isinstance(answers, Err) else len(answers.ok_value)


def live_workers() -> Any:
    """The newest snapshot of each worker that is alive, for pages."""
    newest = WorkerState.objects.using(setting("DATABASE_ALIAS"))
    recent = newest.filter(snapshot_at__gt=timezone.now() - STALE_AFTER)
    return recent.order_by("worker_id", "-snapshot_at").distinct("worker_id")
