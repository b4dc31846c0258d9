"""`manage.py horsies_cancel`: end tasks that wait or run."""

from horsies.contrib.django.actions import cancel
from horsies.contrib.django.steering_command import SteeringCommand


class Command(SteeringCommand):
    help = "Cancel waiting tasks; ask the workers of running ones to end them."
    change = staticmethod(cancel)
    done = "cancelled or asked to end"
