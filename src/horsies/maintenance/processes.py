"""Which processes of this host live, told apart from others that got their pid later."""

import psutil

from horsies.database.rows import StaleRun


def process_started_at(pid: int) -> float | None:
    """When a living process began, in seconds since the epoch; `None` for one gone or a zombie."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return 0.0  # there, and not ours to look at: it counts as alive


def is_executing(run: StaleRun) -> bool:
    """Whether the executing process may still be at it; one that began after the run is another."""
    if run.worker_pid is None:
        return False
    began_at = process_started_at(run.worker_pid)
    if began_at is None or run.started_at is None:
        return began_at is not None
    return began_at <= run.started_at.timestamp() + 1.0
