"""What the tasks of the tests write."""

from django.db import models


class Note(models.Model):
    text = models.TextField()
    pid = models.IntegerField(default=0)
    at = models.DateTimeField(auto_now_add=True)
