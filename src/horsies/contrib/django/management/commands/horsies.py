"""`manage.py horsies ...`: the `horsies` command line with this project's app."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand

from horsies.contrib.django.project import LOCATOR
from horsies.contrib.django.worker_command import share_python_path

_TAKE_AN_APP = ("cancel", "check", "migrate", "ping", "requeue", "scheduler", "worker")


class Command(BaseCommand):
    help = "The horsies command line; the app is this project's: manage.py horsies ping"

    def run_from_argv(self, argv: list[str]) -> None:
        words = argv[2:]
        if words and words[0] in _TAKE_AN_APP:
            words = [words[0], "--module", LOCATOR, *words[1:]]
        share_python_path()
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "horsies.cli.main", *words])  # noqa: S606 - our own program

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Everything happens in `run_from_argv`: the options belong to the other command line."""
