"""`manage.py horsies_requeue`: run ended tasks again."""

from horsies.contrib.django.actions import requeue
from horsies.contrib.django.steering_command import SteeringCommand


class Command(SteeringCommand):
    help = "Put ended tasks back in their queues."
    change = staticmethod(requeue)
    done = "went back to their queues"
