"""The three columns that later releases of django-simple-queue added."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_simple_queue", "0001_initial")]
    operations = [
        migrations.AddField("task", "error", models.TextField(null=True, blank=True)),
        migrations.AddField("task", "log", models.TextField(null=True, blank=True)),
        migrations.AddField(
            "task", "worker_pid", models.IntegerField(null=True, blank=True, editable=False)
        ),
    ]
