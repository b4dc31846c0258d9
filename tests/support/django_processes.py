"""Processes of the tests' Django project: `manage.py`, its output and its exit code."""

import json
import subprocess
import sys
from typing import Any

from django.db import connections

from horsies.contrib.django.worker_process import process_environment


def environment(database: dict[str, Any] | None = None, **settings: Any) -> dict[str, str]:
    """What a process of the project needs; `settings` replace those of the project."""
    found = process_environment(database or connections["default"].settings_dict)
    return {**found, "HORSIES_DJANGO_SETTINGS": json.dumps(settings)}


def manage(
    *arguments: str, database: dict[str, Any] | None = None, within: float = 60, **settings: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a command of the project to its end, on the database of the tests."""
    return subprocess.run(
        [sys.executable, "-m", "horsies.contrib.django.test_worker", *arguments],
        env=environment(database, **settings),
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
