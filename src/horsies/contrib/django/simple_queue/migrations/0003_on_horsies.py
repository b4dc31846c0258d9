"""The old table is set aside, and a view of the engine's tasks takes its name.

`manage.py horsies_import_simple_queue` brings the old rows along; undoing this brings them back.
"""

from django.db import migrations

from horsies.contrib.django.simple_queue.statements import sql_file


class Migration(migrations.Migration):
    dependencies = [
        ("django_simple_queue", "0002_task_error_task_log_task_worker_pid"),
        ("horsies", "0001_engine"),
    ]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(sql_file("forwards"), sql_file("backwards")),
            ],
            state_operations=[
                migrations.AlterModelOptions(
                    "task",
                    {"managed": False, "verbose_name": "Task", "verbose_name_plural": "Tasks"},
                ),
                migrations.AlterModelTable("task", "django_simple_queue_task"),
            ],
        ),
    ]
