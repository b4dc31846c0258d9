"""Runs the tests on servers of several PostgreSQL versions, one after the other.

Started as `python -m support.matrix --versions 14 15 -- <arguments for pytest>`.
"""

import argparse
import os
import subprocess
import sys

from support import postgres_versions
from support.cluster import CONFIGURED_URL


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", nargs="+", type=int, required=True)
    parser.add_argument("pytest", nargs="+", help="arguments for pytest")
    options = parser.parse_args()
    results = [_run(major, options.pytest) for major in options.versions]
    print("\n" + "\n".join(line for line, _ in results))
    sys.exit(any(has_failed for _, has_failed in results))


def _run(major: int, arguments: list[str]) -> tuple[str, bool]:
    """The version's line of the summary, and whether anything failed."""
    try:
        with postgres_versions.running(major) as server:
            print(f"\nPostgreSQL {server.version}", flush=True)
            code, last_line = _pytest(server.superuser_url, arguments)
    except postgres_versions.NotFetchedError as error:
        return f"PostgreSQL {major}: not run: {error}", True
    word = "failed" if code else "passed"
    return f"PostgreSQL {server.version}: {word}: {last_line.strip('= ')}", code != 0


def _pytest(url: str, arguments: list[str]) -> tuple[int, str]:
    """Run pytest, showing what it prints; its exit code and the counts of its last line."""
    last_line = ""
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *arguments],
        env=os.environ | {CONFIGURED_URL: url},
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            last_line = line.strip() or last_line
    return running.returncode, last_line


if __name__ == "__main__":
    main()
