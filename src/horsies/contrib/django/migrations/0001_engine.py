"""The engine's tables and functions, and the models that show them."""

from django.db import migrations, models

import horsies.contrib.django.fields
import horsies.contrib.django.schema


class Migration(migrations.Migration):
    # The engine makes its changes in a transaction of its own, under its own lock.
    atomic = False

    initial = True

    dependencies = ()

    operations = [
        horsies.contrib.django.schema.EngineSchema(),
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("task_id", horsies.contrib.django.fields.TextUUIDField(max_length=36)),
                ("sender_id", models.CharField(max_length=255)),
                ("role", models.CharField(max_length=20)),
                ("sent_at", models.DateTimeField()),
                ("hostname", models.CharField(max_length=255, null=True)),
                ("pid", models.IntegerField(null=True)),
            ],
            options={
                "db_table": "horsies_heartbeats",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="ScheduleState",
            fields=[
                (
                    "schedule_name",
                    models.CharField(
                        max_length=255, primary_key=True, serialize=False, verbose_name="schedule"
                    ),
                ),
                ("last_run_at", models.DateTimeField(null=True)),
                ("next_run_at", models.DateTimeField(null=True)),
                ("last_task_id", models.CharField(max_length=36, null=True)),
                ("run_count", models.IntegerField()),
                ("paused_at", models.DateTimeField(null=True)),
                ("pause_reason", models.TextField(null=True)),
                ("updated_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "db_table": "horsies_schedule_state",
                "permissions": (("run_schedule", "Can run schedules now"),),
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Task",
            fields=[
                (
                    "id",
                    horsies.contrib.django.fields.TextUUIDField(
                        editable=False, max_length=36, primary_key=True, serialize=False
                    ),
                ),
                ("task_name", models.CharField(max_length=255, verbose_name="task")),
                (
                    "queue_name",
                    models.CharField(default="default", max_length=100, verbose_name="queue"),
                ),
                ("priority", models.IntegerField(default=100)),
                ("args", models.TextField(null=True)),
                ("kwargs", models.TextField(null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("PENDING", "Queued"),
                            ("CLAIMED", "Claimed"),
                            ("RUNNING", "In progress"),
                            ("COMPLETED", "Completed"),
                            ("FAILED", "Failed"),
                            ("CANCELLED", "Cancelled"),
                            ("EXPIRED", "Expired"),
                        ],
                        default="PENDING",
                        max_length=20,
                    ),
                ),
                ("sent_at", models.DateTimeField(null=True)),
                ("enqueued_at", models.DateTimeField(null=True)),
                ("is_workflow_task", models.BooleanField(default=False)),
                ("started_at", models.DateTimeField(null=True)),
                ("completed_at", models.DateTimeField(null=True)),
                ("failed_at", models.DateTimeField(null=True)),
                ("result_text", models.TextField(db_column="result", null=True)),
                ("failed_reason", models.TextField(null=True)),
                ("error_code", models.TextField(null=True)),
                ("claimed", models.BooleanField(default=False)),
                (
                    "claimed_by_worker_id",
                    models.CharField(max_length=255, null=True, verbose_name="worker"),
                ),
                ("good_until", models.DateTimeField(null=True)),
                ("retry_count", models.IntegerField(default=0)),
                ("max_retries", models.IntegerField(default=0)),
                ("next_retry_at", models.DateTimeField(null=True)),
                ("task_options", models.TextField(null=True)),
                ("worker_pid", models.IntegerField(null=True)),
                ("worker_hostname", models.CharField(max_length=255, null=True)),
                ("enqueue_sha", models.CharField(default="", max_length=64)),
                ("unique_key", models.CharField(max_length=255, null=True)),
                ("rerun_of", models.CharField(max_length=36, null=True)),
                ("cancel_requested_at", models.DateTimeField(null=True)),
                (
                    "tags",
                    horsies.contrib.django.fields.TextArrayField(null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "verbose_name": "task",
                "verbose_name_plural": "tasks",
                "db_table": "horsies_tasks",
                "permissions": (
                    ("requeue_task", "Can put tasks back in their queues"),
                    ("cancel_task", "Can cancel tasks"),
                ),
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="TaskAttempt",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("attempt", models.IntegerField()),
                ("outcome", models.CharField(max_length=32)),
                ("will_retry", models.BooleanField()),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField()),
                ("error_code", models.TextField(null=True)),
                ("error_message", models.TextField(null=True)),
                ("failed_reason", models.TextField(null=True)),
                ("traceback", models.TextField(null=True)),
                ("worker_id", models.CharField(max_length=255, null=True)),
                ("worker_hostname", models.CharField(max_length=255, null=True)),
                ("worker_pid", models.IntegerField(null=True)),
            ],
            options={
                "db_table": "horsies_task_attempts",
                "ordering": ("attempt",),
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="TaskLog",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("attempt", models.IntegerField()),
                ("log", models.TextField()),
                ("truncated", models.BooleanField()),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "db_table": "horsies_task_logs",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="WorkerState",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("worker_id", models.CharField(max_length=255)),
                ("snapshot_at", models.DateTimeField()),
                ("hostname", models.CharField(max_length=255)),
                ("pid", models.IntegerField()),
                ("processes", models.IntegerField()),
                (
                    "queues",
                    horsies.contrib.django.fields.TextArrayField(),
                ),
                ("tasks_running", models.IntegerField()),
                ("tasks_claimed", models.IntegerField()),
                ("memory_usage_mb", models.FloatField(null=True)),
                ("cpu_percent", models.FloatField(null=True)),
                ("worker_started_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "db_table": "horsies_worker_states",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Workflow",
            fields=[
                (
                    "id",
                    horsies.contrib.django.fields.TextUUIDField(
                        editable=False, max_length=36, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("status", models.CharField(max_length=50)),
                ("on_error", models.CharField(max_length=50)),
                ("result", models.TextField(null=True)),
                ("error", models.TextField(null=True)),
                ("sent_at", models.DateTimeField()),
                ("created_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("completed_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "horsies_workflows",
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="WorkflowTask",
            fields=[
                (
                    "id",
                    horsies.contrib.django.fields.TextUUIDField(
                        editable=False, max_length=36, primary_key=True, serialize=False
                    ),
                ),
                ("task_index", models.IntegerField()),
                ("node_id", models.CharField(max_length=128, null=True)),
                ("task_name", models.CharField(max_length=255)),
                ("status", models.CharField(max_length=50)),
                ("task_id", models.CharField(max_length=36, null=True)),
                ("created_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("completed_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "horsies_workflow_tasks",
                "ordering": ("task_index",),
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
    ]
