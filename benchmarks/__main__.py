"""`make bench`: every target in one run; `make bench-curves`: the rate against every size."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable

from rich.console import Console

from benchmarks.curves import CURVES, Curves
from benchmarks.report import IMAGES, Figure, show, store_figures
from benchmarks.stage import private_server
from benchmarks.targets import Targets

console = Console(width=160)
LONG = {"fleet", "payloads", "peers", "settings"}  # not in a quick run, unless asked for


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["targets", "curves"], default="targets")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work, under 3 minutes")
    parser.add_argument("--only", nargs="+", help="only these groups or curves")
    parser.add_argument("--database-url", help="a server to use instead of the embedded one")
    given = parser.parse_args()
    # As after an installation: what is measured does not compile its modules at each start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Whoever stops it also stops its servers and workers.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))
    with private_server(given.database_url) as url:
        if given.what == "curves":
            curves = Curves(url, _say, is_quick=given.quick)
            for name in _chosen(CURVES, given.only, parser.error):
                curves.run(name)
            return 0
        targets = Targets(url, _say, is_quick=given.quick)
        groups = _chosen(targets.groups, given.only, parser.error)
        if given.quick and not given.only:
            groups = [name for name in groups if name not in LONG]
        return _run(targets, groups, is_quick=given.quick)


def _run(targets: Targets, groups: list[str], *, is_quick: bool) -> int:
    found: dict[str, list[Figure]] = {}
    started = time.monotonic()
    for name in groups:
        found[name] = list(targets.groups[name]())
        show(console, found[name], has_heading=False)
        # Stored as it comes: a run that is stopped keeps what it has.
        store_figures({name: found[name]}, into=None if is_quick else IMAGES)
    console.print()
    show(console, [figure for figures in found.values() for figure in figures])
    console.print(f"{time.monotonic() - started:.0f} s")
    return 0


def _say(text: str) -> None:
    console.print(f"[dim]… {text}[/dim]", highlight=False)


def _chosen(
    known: Iterable[str], wanted: list[str] | None, refuse: Callable[[str], None]
) -> list[str]:
    names = list(known)
    if unknown := set(wanted or ()) - set(names):
        refuse(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return [name for name in names if not wanted or name in wanted]


if __name__ == "__main__":
    sys.exit(main())
