"""What a server's settings are worth: one changed at a time, on a server of its own."""

import statistics
from collections.abc import Callable, Iterator

from benchmarks import ours
from benchmarks.ours import WIDE
from benchmarks.report import Figure
from benchmarks.stage import fresh_database, private_server

# The first is PostgreSQL as it comes; the others change one thing of it.
CHANGES: dict[str, dict[str, str]] = {
    "as it comes": {},
    "shared_buffers 1 GB": {"shared_buffers": "1GB"},
    "max_wal_size 8 GB": {"max_wal_size": "8GB"},
    "wal_compression on": {"wal_compression": "on"},
    "wal_buffers 64 MB": {"wal_buffers": "64MB"},
    "autovacuum off (do not)": {"autovacuum": "off"},
    "synchronous_commit off (do not)": {"synchronous_commit": "off"},
}


def measured(say: Callable[[str], None], *, is_quick: bool) -> Iterator[Figure]:
    """Drain, blocking send and bulk send under each change, in turn."""
    count, repeats = (10_000, 1) if is_quick else (100_000, 2)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in CHANGES}
    for _ in range(repeats):
        for name, changes in CHANGES.items():
            say(name)
            with private_server(None, changes) as server:
                with fresh_database(server) as url:
                    sends = ours.blocking_sends(url, count // 30)
                with fresh_database(server) as url:
                    bulk = ours.fill(url, "noop", count)
                    found[name].append((ours.work_off(url, count, *WIDE).rate, sends, bulk))
    for name, runs in found.items():
        drain, sends, bulk = (statistics.median(run[i] for run in runs) for i in range(3))
        detail = f"blocking send {sends:,.0f}/s, send_many {bulk:,.0f}/s"
        yield Figure(f"server {name}", drain, "tasks/s", "", None, detail)
