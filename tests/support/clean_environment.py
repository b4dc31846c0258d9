"""An environment with our wheel and what it declares, and nothing else: what a newcomer installs.

It needs no network: the wheel is built here, and its dependencies are links into the environment
of the tests. What the wheel does not declare is missing.
"""

import os
import shlex
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from horsies.embedded_postgres import locks
from support.cluster import programs_directory, run_directory

ROOT = Path(__file__).parents[2]
INSTALLED = ("horsies[embedded]", "horsies[sqlalchemy]", "pytest")


def clean_environment() -> Path:
    """The environment's `bin`, made by the first process of the run that asks."""
    directory = programs_directory() / "clean"
    is_ready = directory / "ready"
    with locks.exclusive(run_directory() / "clean.lock", within=110):
        if not is_ready.exists():
            venv.create(directory, clear=True, symlinks=True)
            _install(INSTALLED, directory)
            is_ready.touch()
    return directory / "bin"


def typed(project: Path, line: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Type a line into a terminal of the clean environment and wait for its end."""
    return subprocess.run(
        shlex.split(line),
        cwd=project,
        env=_terminal(environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def started(project: Path, line: str, **environment: str) -> "subprocess.Popen[str]":
    """Type a line into another terminal; what it shows goes to `log.txt` in the project."""
    with (project / "log.txt").open("w") as log:
        return subprocess.Popen(
            shlex.split(line),
            cwd=project,
            env=_terminal(environment),
            stdout=log,
            stderr=log,
            text=True,
        )


def _terminal(more: Mapping[str, str]) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    path = f"{clean_environment()}{os.pathsep}{os.environ['PATH']}"
    return {**ours, "PATH": path, "NO_COLOR": "1", "HORSIES_EMBEDDED": "0", **more}


def _install(wanted: Sequence[str], directory: Path) -> None:
    """What `pip install` of these words leaves in the environment."""
    wheels = directory / "wheels"
    build = ("hatchling", "build", "--target", "wheel", "--directory", str(wheels))
    subprocess.run([sys.executable, "-m", *build], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = wheels.glob("horsies-*.whl")
    pip = (sys.executable, "-m", "pip", "--python", str(directory / "bin" / "python"))
    options = ("--quiet", "--no-index", "--no-deps", "--no-compile")
    subprocess.run([*pip, "install", *options, str(wheel)], check=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    (ours,) = Distribution.discover(name="horsies", path=[str(packages)])
    needed = {"horsies": ours}
    for words in wanted:
        _add(Requirement(words), needed)
    for one in list(needed.values())[1:]:
        for entry in _entries(one):
            (packages / entry.name).symlink_to(entry)


def _add(wanted: Requirement, needed: dict[str, Distribution]) -> None:
    """Add a distribution by its name, and what it needs with these extras."""
    one = needed.setdefault(wanted.name, distribution(wanted.name))
    for requirement in map(Requirement, one.requires or ()):
        marker = requirement.marker
        is_wanted = (
            any(marker.evaluate({"extra": e}) for e in ("", *wanted.extras)) if marker else True
        )
        if is_wanted and (requirement.name not in needed or requirement.extras):
            _add(requirement, needed)


def _entries(needed: Distribution) -> Iterator[Path]:
    """The packages, modules and metadata of a distribution, where they are."""
    names = {file.parts[0] for file in needed.files or ()} - {"..", "__pycache__"}
    for name in sorted(names):
        yield Path(str(needed.locate_file(name)))
