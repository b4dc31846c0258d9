"""The table as the first releases of django-simple-queue made it."""

import uuid

from django.db import migrations, models

STATUSES = (
    (0, "Queued"),
    (1, "In progress"),
    (2, "Completed"),
    (3, "Failed"),
    (4, "Cancelled"),
)


class Migration(migrations.Migration):
    initial = True
    dependencies = ()
    operations = [
        migrations.CreateModel(
            name="Task",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        primary_key=True, default=uuid.uuid4, editable=False, serialize=False
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("modified", models.DateTimeField(auto_now=True)),
                ("task", models.CharField(max_length=127)),
                ("args", models.TextField(null=True, blank=True)),
                ("status", models.IntegerField(default=0, choices=STATUSES)),
                ("output", models.TextField(null=True, blank=True)),
            ],
            options={"verbose_name": "Task", "verbose_name_plural": "Tasks"},
        ),
    ]
