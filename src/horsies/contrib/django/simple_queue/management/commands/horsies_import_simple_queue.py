"""`manage.py horsies_import_simple_queue`: bring the rows of django-simple-queue along."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections, transaction

from horsies.contrib.django.conf import setting
from horsies.contrib.django.simple_queue.statements import import_from, raw_writes

LEGACY_TABLE = "django_simple_queue_task_legacy"


class Command(BaseCommand):
    help = "Copy the rows of the old table; those that are here already are left alone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--from-table", default=LEGACY_TABLE, metavar="TABLE")
        parser.add_argument("--batch", type=int, default=1000, metavar="N")
        parser.add_argument("--dry-run", action="store_true", help="only count")
        parser.add_argument(
            "--in-progress",
            choices=("fail", "requeue"),
            default="fail",
            help="what becomes of rows that an old worker had begun (default: fail)",
        )

    def handle(self, **options: Any) -> None:
        alias, table = setting("DATABASE_ALIAS"), options["from_table"]
        if table not in connections[alias].introspection.table_names():
            raise CommandError(f"there is no table {table!r} to import from")
        if options["batch"] < 1:
            raise CommandError("--batch must be positive")
        if options["dry_run"]:
            count = import_from("count_to_import", table)
            self.stdout.write(f"{count} tasks would be imported")
            return
        total = 0
        parameters = {"batch": options["batch"], "in_progress": options["in_progress"]}
        while True:
            with transaction.atomic(using=alias), raw_writes():
                imported = import_from("import_some", table, **parameters)
            total += imported
            if imported < options["batch"]:
                break
        self.stdout.write(f"{total} tasks imported")
