"""The app as the children of a worker load it: Django is set up, and no connection is open.

A child is a fork of the process that imports this, and connections do not survive a fork.
"""

import django
from horsies.contrib.django.test_worker import use_test_database

use_test_database()
django.setup()

from horsies.contrib.django.connections import close_connections  # noqa: E402
from horsies.contrib.django.project import app  # noqa: E402

__all__ = ["app"]

close_connections()
