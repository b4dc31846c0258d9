"""Django's own tests of its Tasks framework, from its source distribution; none of it is kept."""

import subprocess
import sys
import tarfile
from pathlib import Path

import django


def tasks_tests(directory: Path) -> Path:
    """Unpack `tests/tasks` of the installed version; return the directory that contains it."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    wanted = f"Django=={django.get_version()}"
    subprocess.run([*pip, "--dest", str(directory), wanted], check=True, capture_output=True)
    (archive,) = [*directory.glob("*.tar.gz")]
    with tarfile.open(archive) as source:
        members = [one for one in source.getmembers() if "/tests/tasks/" in one.name]
        source.extractall(directory, members, filter="data")
    (found,) = directory.glob("*/tests")
    return found
