"""The previous release beside the present one: its wheel, and what its processes need to run it.

`python -m support.releases` cuts the present release's wheel into the place of the one before.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.command import write_project

ROOT = Path(__file__).parents[2]
PRESENT = ROOT / "src"
WHEELS = ROOT / "tests" / "releases"
_SIZE_LIMIT = 400_000  # bytes; every release adds one to the history of the repository
_LEFT_OUT = "horsies/docs/"  # a quarter of the wheel, and no test of a release reads it


@dataclass(frozen=True, slots=True)
class Release:
    """A release whose processes run in a project of their own, on one database."""

    package: Path  # the directory with its package `horsies`
    project: Path
    environment: dict[str, str]


def previous_wheel() -> Path:
    """The only wheel that is kept."""
    (wheel,) = WHEELS.glob("horsies-*.whl")
    return wheel


def unpack_previous(directory: Path) -> Path:
    """Unpack the previous release into this directory."""
    with zipfile.ZipFile(previous_wheel()) as wheel:
        wheel.extractall(directory)
    return directory


def make_release(package: Path, project: Path, files: Mapping[str, str], url: str) -> Release:
    """The release in `package`, with a project of these files."""
    project.mkdir()
    text = (package / "horsies" / "version.py").read_text()
    environment = {
        "PYTHONPATH": str(package),
        "RELEASE": text.rpartition(" = ")[2].strip().strip('"'),
        "HORSIES_DATABASE_URL": url,
    }
    return Release(package, write_project(project, files), environment)


def python_of(package: Path) -> tuple[str, ...]:
    """A command that takes a module and its arguments as `python -m` does, of that release only."""
    return ("env", f"PYTHONPATH={package}", sys.executable, "-c", _RUN_MODULE, str(package))


_RUN_MODULE = """
import runpy, sys, horsies
assert horsies.__file__.startswith(sys.argv[1]), f"not this release: {horsies.__file__}"
del sys.argv[:2]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def cut() -> Path:
    """Build the present release's wheel and keep it instead of the one before."""
    with tempfile.TemporaryDirectory() as directory:
        # Without its cache: pip takes a directory with a dash in its name for a version it knows.
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-cache-dir", "--no-deps"]
        subprocess.run([*pip, "--wheel-dir", directory, str(ROOT)], check=True)
        (built,) = Path(directory).glob("horsies-*.whl")
        lean = built.with_suffix(".lean")
        _copy_without_docs(built, lean)
        size = lean.stat().st_size
        if size > _SIZE_LIMIT:
            sys.exit(f"{built.name} has {size} bytes, more than {_SIZE_LIMIT}: what has come in?")
        WHEELS.mkdir(exist_ok=True)
        for old in WHEELS.glob("horsies-*.whl"):
            old.unlink()
        kept = WHEELS / built.name
        kept.write_bytes(lean.read_bytes())
    return kept


def _copy_without_docs(source: Path, target: Path) -> None:
    """Copy the wheel; its list of files tells of what is left."""
    with (
        zipfile.ZipFile(source) as wheel,
        zipfile.ZipFile(target, "w") as lean,
    ):
        members = [m for m in wheel.infolist() if not m.filename.startswith(_LEFT_OUT)]
        for member in members:
            content = wheel.read(member)
            if member.filename.endswith(".dist-info/RECORD"):
                lines = content.decode().splitlines(keepends=True)
                content = "".join(x for x in lines if not x.startswith(_LEFT_OUT)).encode()
            lean.writestr(member, content, compresslevel=9)


if __name__ == "__main__":
    wheel = cut()
    print(f"{os.path.relpath(wheel)}: {wheel.stat().st_size} bytes")
