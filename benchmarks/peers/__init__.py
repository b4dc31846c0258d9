"""Peers, each measured by a script of ours in an environment of its own."""

import subprocess
import sys
from pathlib import Path

ENVIRONMENT = Path(__file__).parent.parent / ".peers"
PACKAGES = ("pgqueuer", "asyncpg", "procrastinate", "psycopg[binary,pool]", "huey")


def prepare() -> bool:
    """Make the environment once; False when the packages cannot be had."""
    if (ENVIRONMENT / ".ready").exists():
        return True
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    install = [str(ENVIRONMENT / "bin/python"), "-m", "pip", "install", "-q", *PACKAGES]
    if subprocess.run(install, check=False).returncode != 0:
        return False
    (ENVIRONMENT / ".ready").touch()
    return True


def measure(script: str, *arguments: str) -> float | None:
    """The figure a script prints last, or None when it fails."""
    command = [str(ENVIRONMENT / "bin/python"), str(Path(__file__).parent / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        sys.stderr.write(done.stderr[-2000:])
        return None
    return float(done.stdout.split()[-1])
