"""`manage.py horsies ...`: the `horsies` command line with this project's app."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand

from horsies.contrib.django.project import LOCATOR
from horsies.contrib.django.worker_command import share_python_path

# The commands that must be told their app, and how many words name one of theirs.
_NAMES_ITS_APP = {
    "check": 1,
    "migrate": 1,
    "ping": 1,
    "schedule": 2,
    "scheduler": 1,
    "worker": 1,
    "workflow": 2,
}


class Command(BaseCommand):
    help = "The horsies command line; the app is this project's: manage.py horsies status"

    def run_from_argv(self, argv: list[str]) -> None:
        words = argv[2:]
        named = _NAMES_ITS_APP.get(words[0], 0) if words else 0
        if named and len(words) >= named:
            words = [*words[:named], "--module", LOCATOR, *words[named:]]
        os.environ["HORSIES_APP"] = LOCATOR  # for all others
        share_python_path()
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "horsies.cli.main", *words])  # noqa: S606 - our own program

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Everything happens in `run_from_argv`: the options belong to the other command line."""
