"""`manage.py horsies_health`: exit code 0 when all is well, 1 otherwise."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from horsies.contrib.django.health import check_health


class Command(BaseCommand):
    help = "Say whether the database, its migrations and at least one worker are there."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--max-backlog", type=int, help="fail when more tasks wait")
        parser.add_argument("--max-lag", type=float, help="fail when one waits for more seconds")
        parser.add_argument(
            "--timeout", type=float, default=1.0, help="seconds to wait for workers"
        )

    def handle(self, **options: Any) -> None:
        health = check_health(
            max_backlog=options["max_backlog"],
            max_lag_s=options["max_lag"],
            timeout_s=options["timeout"],
        )
        self.stdout.write(json.dumps(health.as_dict()))
        if not health.is_healthy:
            sys.exit(1)
