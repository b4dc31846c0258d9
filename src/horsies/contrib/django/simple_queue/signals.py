"""The signals of django-simple-queue; the sender is the `Task` class.

A receiver that raises is logged and changes nothing.
"""

from django.dispatch import Signal

before_job = Signal()  # task
on_success = Signal()  # task
on_failure = Signal()  # task, error
before_loop = Signal()  # task, iteration
after_loop = Signal()  # task, output, iteration
