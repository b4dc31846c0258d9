"""Which processes of this host live, told apart from others that got their pid later.

Without the wall clock: it may be set, and the database's may differ by hours.
"""

import socket
from functools import cache
from pathlib import Path

from horsies.clock import since_boot
from horsies.recovery.statements import LostRun


@cache
def host_key() -> str:
    """Which machine, since which boot, and which pid namespace of it.

    Containers share hostnames and cloned machines share everything else: only where this key is
    the same does a pid mean the same process.
    """
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        namespace = Path("/proc/self/ns/pid").stat()
    except OSError:  # not Linux: no containers either
        import psutil

        return f"{socket.gethostname()}:{int(psutil.boot_time())}"
    return f"{boot_id}:{namespace.st_dev}:{namespace.st_ino}"


def process_started_at(pid: int) -> float | None:
    """When a living process began, in seconds since boot; `None` for one gone or a zombie."""
    if pid <= 0:  # a row may say anything
        return None
    import psutil  # only workers ask; producers start without it

    booted_at = psutil.boot_time()
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.create_time() - booted_at
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return 0.0  # there, and not ours to look at: it counts as alive


def is_executing(run: LostRun) -> bool:
    """Whether the executing process may still be at it; one younger than the run is another."""
    if run.worker_pid is None:
        return False
    began_at = process_started_at(run.worker_pid)
    if began_at is None or run.started_at is None:
        return began_at is not None
    run_age_s = (run.now_at - run.started_at).total_seconds()
    return since_boot() - began_at >= run_age_s - 1.0
