"""`python -m horsies.contrib.django.test_worker <command> ...`: manage.py on a test database.

Tests rename the database; the process that they start learns the name from its environment.
"""

import json
import os
import sys

from django.conf import settings
from django.core.management import execute_from_command_line

VARIABLE = "HORSIES_DATABASE_SETTINGS"


def use_test_database() -> None:
    """Replace the settings of our database by those in the environment, if they are there."""
    if text := os.environ.get(VARIABLE):
        alias = (getattr(settings, "HORSIES", None) or {}).get("DATABASE_ALIAS", "default")
        settings.DATABASES[alias].update(json.loads(text))


def main() -> None:
    """Run a management command."""
    use_test_database()
    execute_from_command_line(["manage.py", *sys.argv[1:]])


if __name__ == "__main__":
    main()
