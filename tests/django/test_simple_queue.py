"""E-33 to E-40: code written for django-simple-queue."""

import importlib
import json
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

import psycopg
import pytest
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.test import Client, override_settings
from django.urls import clear_url_caches, reverse
from django_simple_queue import conf, monitor, signals
from django_simple_queue.admin import TaskAdmin
from django_simple_queue.models import Task
from django_simple_queue.utils import TaskNotAllowedError, create_task
from django_simple_queue.worker import ManagedEventLoop, execute_task

import horsies.contrib.django.simple_queue.models as new_models
from horsies.contrib.django import TaskArgsTooLarge
from horsies.contrib.django.models import Task as EngineTask
from horsies.contrib.django.models import TaskAttempt
from horsies.contrib.django.project import app
from horsies.contrib.django.simple_queue.output import MARKER
from horsies.contrib.django.simple_queue.statements import raw_writes
from horsies.contrib.django.testing import WorkerProcess, run_pending
from horsies.worker import claimer
from support import cluster
from support.django_processes import manage
from support.django_project import urls
from support.django_project.settings import database
from support.django_project.shop.models import Note
from support.eventually import eventually

JOBS = "support.django_project.shop.jobs"
KEYS = [
    "id",
    "created",
    "modified",
    "task",
    "args",
    "status",
    "output",
    "worker_pid",
    "error",
    "log",
]


def make(name: str, **args: Any) -> uuid.UUID:
    return create_task(f"{JOBS}.{name}", args)


def done(name: str, **args: Any) -> Task:
    """The task after it has run here."""
    task_id = make(name, **args)
    run_pending()
    return Task.objects.get(id=task_id)


def the_task(task_id: uuid.UUID) -> Task:
    return Task.objects.get(id=task_id)


def in_state(status: int, **fields: Any) -> Task:
    """A row as a test writes it by hand."""
    with raw_writes():
        return Task.objects.create(task=f"{JOBS}.add", args="{}", status=status, **fields)


def register(model_admin: Any) -> None:
    """Let the admin show tasks by this class, also where its pages are known already."""
    admin.site.unregister(Task)
    admin.site.register(Task, model_admin)
    clear_url_caches()
    importlib.reload(urls)


@contextmanager
def heard() -> Iterator[list[str]]:
    """The names of the signals, in their order."""
    found: list[str] = []
    names = ("before_job", "on_success", "on_failure", "before_loop", "after_loop")
    receivers: dict[str, Callable[..., None]] = {}
    for name in names:

        def receive(sender: Any, name: str = name, iteration: int | None = None, **_: Any) -> None:
            assert sender is Task
            found.append(name if iteration is None else f"{name} {iteration}")

        receivers[name] = receive
        getattr(signals, name).connect(receive)
    try:
        yield found
    finally:
        for name in names:
            getattr(signals, name).disconnect(receivers[name])


@pytest.mark.acceptance("E-33")
@pytest.mark.django_db
class TestE33TheThirtyBehaviours:
    """What the tests of django-simple-queue promise, said anew."""

    def test_e33_old_names_are_the_new_modules(self) -> None:
        assert Task is new_models.Task
        assert reverse("django_simple_queue:task") == "/django_simple_queue/task"

    @pytest.mark.seed("S67", "S68", "S69")
    def test_e33_states_have_numbers_and_labels(self) -> None:
        numbers = (Task.QUEUED, Task.PROGRESS, Task.COMPLETED, Task.FAILED, Task.CANCELLED)
        labels = [Task(status=number).get_status_display() for number in numbers]

        assert numbers == (0, 1, 2, 3, 4)
        assert labels == ["Queued", "In progress", "Completed", "Failed", "Cancelled"]

    @pytest.mark.seed("S70")
    def test_e33_a_worker_looks_every_three_to_nine_seconds(self) -> None:
        """The engine's own interval, whose spread tests/unit/test_polling.py holds."""
        interval_s = app.config.resilience.notify_poll_interval_ms / 1000

        assert (interval_s * claimer._POLL_LOW, interval_s * claimer._POLL_HIGH) == (3, 9)

    @pytest.mark.seed("S74", "S76")
    def test_e33_a_plain_task_completes_with_its_output(self) -> None:
        task = done("add", a=1, b=2)

        assert (task.status, task.output, task.error, task.worker_pid) == (2, "3", None, None)

    def test_e33_a_generator_completes_with_all_it_yielded(self) -> None:
        task = done("count", to=3)

        assert (task.status, task.output) == (Task.COMPLETED, "0;1;2;")

    @pytest.mark.seed("S74", "S77", "S80")
    def test_e33_a_failure_keeps_class_and_traceback(self) -> None:
        errors: list[Any] = []

        def keep(error: Any, **_: Any) -> None:
            errors.append(error)

        signals.on_failure.connect(keep)
        with heard() as told:
            task = done("fail", x=1)
        signals.on_failure.disconnect(keep)

        assert [repr(error) for error in errors] == ["ValueError('Something went wrong')"]
        assert (task.status, task.output) == (Task.FAILED, "")
        assert task.error.startswith("ValueError('Something went wrong')\n\nTraceback")
        assert told == ["before_job", "on_failure"]

    def test_e33_signals_come_in_order(self) -> None:
        with heard() as plain:
            done("add", a=1, b=2)
        with heard() as loop:
            done("count", to=2)

        loops = ["before_loop 0", "after_loop 0", "before_loop 1", "after_loop 1"]
        assert plain == ["before_job", "on_success"]
        assert loop == ["before_job", *loops, "on_success"]

    def test_e33_a_raising_receiver_changes_nothing(self) -> None:
        def raising(**_: Any) -> None:
            raise RuntimeError("broken")

        signals.on_success.connect(raising)
        try:
            task = done("add", a=1, b=2)
        finally:
            signals.on_success.disconnect(raising)

        assert task.status == Task.COMPLETED

    @pytest.mark.seed("S86", "S87")
    def test_e33_a_dead_pid_is_an_orphan_and_a_live_one_is_not(self) -> None:
        dead, alive = (
            in_state(Task.PROGRESS, worker_pid=4194303),
            in_state(Task.PROGRESS, worker_pid=os.getpid()),
        )
        with heard() as told:
            monitor.detect_orphaned_tasks()
        dead.refresh_from_db()
        alive.refresh_from_db()

        assert (dead.status, dead.worker_pid) == (Task.FAILED, None)
        assert dead.error == "Task failed: worker process (PID 4194303) no longer running"
        assert (alive.status, told) == (Task.PROGRESS, ["on_failure"])

    @pytest.mark.seed("S88")
    def test_e33_an_exit_code_fails_what_is_in_progress(self) -> None:
        failed, fine = in_state(Task.PROGRESS), in_state(Task.PROGRESS)
        ended = in_state(Task.COMPLETED, output="kept")
        monitor.handle_subprocess_exit(failed.id, 1)
        monitor.handle_subprocess_exit(fine.id, 0)
        monitor.handle_subprocess_exit(ended.id, 1)
        states = [Task.objects.get(id=one.id).status for one in (failed, fine, ended)]

        assert states == [Task.FAILED, Task.PROGRESS, Task.COMPLETED]
        assert Task.objects.get(id=failed.id).error == "Worker subprocess exited with code 1"

    def test_e33_a_timeout_fails_what_is_in_progress(self) -> None:
        task = in_state(Task.PROGRESS)
        monitor.handle_task_timeout(task.id, 5)
        task.refresh_from_db()

        assert (task.status, task.error) == (Task.FAILED, "Task timed out after 5 seconds")

    def test_e33_execute_task_runs_one_here(self) -> None:
        first, second = make("add", a=1, b=2), make("add", a=3, b=4)
        execute_task(second)

        assert Task.objects.get(id=second).output == "7"
        assert Task.objects.get(id=first).status == Task.QUEUED

    def test_e33_a_managed_loop_is_closed(self) -> None:
        with ManagedEventLoop() as loop:
            assert not loop.is_closed()
        assert loop.is_closed()

    def test_e33_validation(self) -> None:
        Task(task=f"{JOBS}.add", args="").clean_args()
        for task, clean in (
            (Task(task="no.such"), "clean_task"),
            (Task(task=f"{JOBS}._logger"), "clean_task"),
            (Task(args="{"), "clean_args"),
        ):
            with pytest.raises(ValidationError, match="Invalid"):
                getattr(task, clean)()
        with pytest.raises(TypeError, match="args should be of type dict"):
            create_task(f"{JOBS}.add", [1])  # type: ignore[arg-type]

    def test_e33_settings_are_read_at_each_call(self) -> None:
        with override_settings(DJANGO_SIMPLE_QUEUE_TASK_TIMEOUT=7):
            limited = conf.get_task_timeout()
        with override_settings(DJANGO_SIMPLE_QUEUE_TASK_TIMEOUT=0):
            unlimited = conf.get_task_timeout()

        assert (conf.get_task_timeout(), limited, unlimited) == (3600, 7, None)
        assert (conf.get_max_args_size(), conf.get_max_output_size()) == (1_048_576, 10_485_760)

    def test_e33_the_admin_can_be_extended(self, admin_client: Client) -> None:
        class Mine(TaskAdmin):
            actions: ClassVar[list[Any]] = [*TaskAdmin.actions, "archive"]
            list_filter = (*TaskAdmin.list_filter, "task")

            def archive(self, request: Any, queryset: Any) -> None:
                """Does nothing yet."""

        task = in_state(Task.FAILED, error="x")
        register(Mine)
        try:
            page = admin_client.get("/admin/django_simple_queue/task/").content.decode()
            add = admin_client.get("/admin/django_simple_queue/task/add/").content.decode()
            detail = admin_client.get(f"/admin/django_simple_queue/task/{task.id}/change/")
            again = admin_client.get("/admin/django_simple_queue/task/add/").content.decode()
        finally:
            register(TaskAdmin)

        assert "archive" in page
        assert detail.status_code == 200
        assert 'name="task"' in add
        assert 'name="task"' in again, "the add form must not become read-only"


@pytest.mark.acceptance("E-33")
@pytest.mark.seed("S83", "S88")
def test_e33_the_worker_tells_of_ends_that_the_child_cannot(
    start_worker: Callable[..., Any],
) -> None:
    limits = {"TASK_TIMEOUT": 1, "TERMINATE_GRACE": 0.5}
    start_worker(
        "--processes",
        "2",
        HORSIES_DJANGO_SETTINGS=json.dumps({"HORSIES": limits, "NOTE_SIGNALS": True}),
    )
    late, left = make("sleep", seconds=60), make("leave", code=3)

    eventually(lambda: Note.objects.count() == 2, within=30)

    assert set(Note.objects.values_list("text", flat=True)) == {
        f"failed {late} {TimeoutError('Task exceeded 1s timeout')!r}",
        f"failed {left} None",
    }
    assert [(one.status, one.error, one.worker_pid) for one in map(the_task, (late, left))] == [
        (Task.FAILED, "Task timed out after 1 seconds", None),
        (Task.FAILED, "Worker subprocess exited with code 3", None),
    ]


@pytest.mark.acceptance("E-33")
@pytest.mark.seed("S85", "S87")
def test_e33_a_sweep_by_hand_tells_of_the_runs_of_dead_workers(committed: None) -> None:
    task_id = make("add", a=1, b=2)
    with connection.cursor() as cursor:
        cursor.execute(
            "update horsies_tasks set status = 'RUNNING', claimed_by_worker_id = 'elsewhere',"
            " worker_pid = 4194303, worker_hostname = 'elsewhere',"
            " started_at = now() - interval '1 hour', claimed_at = now() - interval '1 hour'"
            " where id = %s",
            [str(task_id)],
        )

    with heard() as told:
        monitor.detect_orphaned_tasks()
        eventually(lambda: told, within=10)

    orphan = the_task(task_id)
    assert told == ["on_failure"]
    assert (orphan.status, orphan.worker_pid) == (Task.FAILED, None)
    assert orphan.error == "Task failed: worker process (PID 4194303) no longer running"


@pytest.mark.acceptance("E-34")
@pytest.mark.seed("S75", "S90")
@pytest.mark.django_db
def test_e34_the_page_and_its_json(client: Client) -> None:
    task = done("give", value="<b>bold</b>")
    named = in_state(Task.COMPLETED, log="<i>log</i>")
    with raw_writes():
        Task.objects.filter(pk=named.pk).update(task="<u>name</u>", args='{"x": "<s>"}')
    url = reverse("django_simple_queue:task")
    answer = client.get(url, {"task_id": task.id, "type": "json"})
    page = client.get(url, {"task_id": task.id})
    other = client.get(url, {"task_id": named.id}).content.decode()
    raw = client.get(url, {"task_id": named.id, "type": "json"}).json()
    wrong = [client.get(url, q) for q in ({}, {"task_id": "x"}, {"task_id": uuid.uuid4()})]

    shown = json.loads(answer.content)
    assert list(shown) == KEYS
    assert (shown["status"], shown["output"], shown["worker_pid"]) == (
        "Completed",
        "<b>bold</b>",
        None,
    )
    assert "&lt;b&gt;bold" in page.content.decode()
    assert all(text in other for text in ("&lt;u&gt;name", "&lt;s&gt;", "&lt;i&gt;log"))
    assert not any(text in other for text in ("<u>", "<s>", "<i>"))
    assert (raw["task"], raw["args"], raw["log"]) == ("<u>name</u>", '{"x": "<s>"}', "<i>log</i>")
    assert 'http-equiv="refresh" content="5"' in page.content.decode()
    assert [(one.status_code, one.content.decode()) for one in wrong] == [
        (400, "Missing task_id parameter."),
        (400, "Invalid task_id format."),
        (400, "Task not found."),
    ]


@pytest.mark.acceptance("E-34")
@pytest.mark.django_db
def test_e34_the_page_can_be_for_the_staff_alone(
    client: Client, admin_client: Client, django_user_model: Any
) -> None:
    url, query = reverse("django_simple_queue:task"), {"task_id": done("nothing").id}
    someone = Client()
    someone.force_login(django_user_model.objects.create_user("someone"))
    with override_settings(HORSIES={"STATUS_VIEW_ACCESS": "staff"}):
        answers = [one.get(url, query) for one in (client, someone, admin_client)]

    assert [one.status_code for one in answers] == [302, 403, 200]
    assert "/login/" in answers[0].url


@pytest.mark.acceptance("E-35")
@pytest.mark.seed("S72", "S79")
def test_e35_output_is_visible_while_it_grows(
    start_worker: Callable[..., Any], client: Client
) -> None:
    start_worker("--processes", "1")
    task_id = make("count_then_wait", to=2, seconds=3)
    eventually(lambda: Task.objects.get(id=task_id).output == "0;1;", within=20)
    running = client.get(
        reverse("django_simple_queue:task"), {"task_id": task_id, "type": "json"}
    ).json()
    eventually(lambda: Task.objects.get(id=task_id).status == Task.COMPLETED, within=20)
    ended = Task.objects.get(id=task_id)

    assert (running["status"], running["output"]) == ("In progress", "0;1;")
    assert running["worker_pid"]
    assert (ended.output, ended.worker_pid) == ("0;1;end", None)
    assert str(ended.modified) > running["modified"]


@pytest.mark.acceptance("E-35")
@pytest.mark.django_db
def test_e35_values_of_every_kind() -> None:
    partial = done("count_then_fail", to=2)
    kinds = {
        name: done(name, **args).output
        for name, args in (
            ("give", {"value": {"a": 1}}),
            ("give_async", {"value": [1]}),
            ("count_async", {"to": 2}),
            ("nothing", {}),
        )
    }
    with CountedStatements() as counted:
        done("count", to=10_000)

    assert (partial.status, partial.output) == (Task.FAILED, "0;1;")
    assert partial.error.startswith("ValueError('enough')")
    assert kinds == {
        "give": '{"a": 1}',
        "give_async": "[1]",
        "count_async": "0;1;",
        "nothing": None,
    }
    # One insert of one piece per value: the cost does not grow with what is there already.
    assert 10_000 <= counted.count < 10_100
    assert counted.longest < 600


class CountedStatements:
    """How many statements a block sends, and the length of the longest insert."""

    def __enter__(self) -> Self:
        self.count = self.longest = 0
        self._wrapper = connection.execute_wrapper(self._execute)
        self._wrapper.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._wrapper.__exit__(*error)

    def _execute(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        self.count += 1
        if "insert into django_simple_queue_output" in str(sql):
            self.longest = max(self.longest, len(str(sql)) + len(str(params)))
        return execute(sql, params, many, context)


@pytest.mark.acceptance("E-36")
@pytest.mark.seed("S75", "S78")
def test_e36_the_log_has_everything_and_is_there_early(start_worker: Callable[..., Any]) -> None:
    worker = start_worker(
        "--processes", "1", HORSIES_DJANGO_SETTINGS=json.dumps({"HORSIES": {"MAX_LOG_SIZE": 2048}})
    )
    short = make("talk")
    eventually(lambda: Task.objects.get(id=short).status == Task.COMPLETED, within=20)
    loud = make("chatter", lines=1_000)
    eventually(lambda: Task.objects.get(id=loud).status == Task.COMPLETED, within=20)
    long = make("talk", seconds=60)
    early = eventually(lambda: Task.objects.get(id=long).log, within=20)
    cluster.kill_process(worker.pid)
    after = Task.objects.get(id=long)
    task = Task.objects.get(id=short)

    assert task.output == "spoken"
    for text in ("by print", "by stderr", "shop DEBUG by logging", "by descriptor"):
        assert text in task.log
        assert text in early
    cut = Task.objects.get(id=loud).log
    assert len(cut.encode()) <= 2_048 + 100, "the limit, and a remark that it was cut"
    assert f"Initiating task id: {short}" in task.log
    assert after.log == early


@pytest.mark.acceptance("E-37")
@pytest.mark.django_db
def test_e37_the_allowlist_and_the_sizes() -> None:
    allowed = {"DJANGO_SIMPLE_QUEUE_ALLOWED_TASKS": [f"{JOBS}.add"]}
    with override_settings(**allowed):
        listed = make("add", a=1, b=2)
        with pytest.raises(TaskNotAllowedError, match="is not in the allowed list"):
            make("fail")
        direct = Task.objects.create(task="antigravity.geohash", args="{}")
        run_pending()
    with (
        override_settings(DJANGO_SIMPLE_QUEUE_ALLOWED_TASKS=[]),
        pytest.raises(TaskNotAllowedError),
    ):
        make("add", a=1, b=2)
    with override_settings(DJANGO_SIMPLE_QUEUE_MAX_ARGS_SIZE=50), pytest.raises(TaskArgsTooLarge):
        make("give", value="x" * 100)
    with override_settings(DJANGO_SIMPLE_QUEUE_MAX_OUTPUT_SIZE=4):
        cut = done("give", value="ééé")
    direct.refresh_from_db()

    assert Task.objects.get(id=listed).status == Task.COMPLETED
    assert direct.status == Task.FAILED
    assert "is not in the allowed list" in direct.error
    assert "antigravity" not in __import__("sys").modules
    assert cut.output == f"éé{MARKER}"


@pytest.mark.acceptance("E-38")
@pytest.mark.seed("S89", "S91", "S92")
@pytest.mark.django_db
def test_e38_requeue_and_cancel_by_the_orm() -> None:
    failed = done("fail")
    failed.status, failed.error, failed.worker_pid = Task.QUEUED, None, None
    failed.save()
    saved = Task.objects.get(id=failed.id)
    run_pending()
    updated = Task.objects.filter(status=Task.FAILED).update(
        status=Task.QUEUED, error=None, worker_pid=None
    )
    waiting = Task.objects.get(id=failed.id)
    ran = run_pending()
    running = in_state(Task.PROGRESS, worker_pid=1)
    with pytest.raises(IntegrityError, match="is running; cancel it first"), transaction.atomic():
        Task.objects.filter(id=running.id).update(status=Task.QUEUED)
    running.status = Task.QUEUED
    with pytest.raises(IntegrityError, match="is running; cancel it first"), transaction.atomic():
        running.save()
    with pytest.raises(IntegrityError, match="only a worker"), transaction.atomic():
        Task.objects.filter(id=failed.id).update(status=Task.COMPLETED)
    queued = make("add", a=1, b=2)
    Task.objects.filter(id=queued).update(status=Task.CANCELLED)
    locked = list(Task.objects.select_for_update(skip_locked=True).filter(status=Task.FAILED))

    assert (saved.status, saved.error, saved.worker_pid, saved.log) == (0, None, None, None)
    assert (updated, ran, waiting.error) == (1, 1, None)
    assert EngineTask.objects.get(pk=failed.id).attempts.count() == 3
    assert Task.objects.get(id=queued).status == Task.CANCELLED
    assert [one.id for one in locked] == [failed.id]
    assert Task.objects.filter(status=Task.CANCELLED).delete()[0] == 1


@pytest.mark.acceptance("E-39")
@pytest.mark.parametrize("columns", [7, 10])
def test_e39_old_rows_come_along(server: cluster.Server, columns: int) -> None:
    then = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)
    ids = [str(uuid.uuid4()) for _ in range(5)]
    step, begun = ("0001", "fail") if columns == 7 else ("0002", "requeue")
    with server.temporary_database() as url:
        found = database(url)
        assert manage("migrate", "-v0", "django_simple_queue", step, database=found).returncode == 0
        with psycopg.connect(url) as old:
            for status, task_id in enumerate(ids):
                old.execute(
                    "insert into django_simple_queue_task"
                    " (id, created, modified, task, args, status, output)"
                    " values (%s, %s, %s, %s, %s, %s, %s)",
                    [
                        task_id,
                        then,
                        then,
                        f"{JOBS}.add",
                        '{"a": 1, "b": 2}',
                        status,
                        f"out {status}",
                    ],
                )
            if columns == 10:
                old.execute(
                    "update django_simple_queue_task set error = 'broken', log = 'said' "
                    "where status = 3"
                )
            before = old.execute("select * from django_simple_queue_task order by id").fetchall()
        code = (
            "from django.core.management import call_command as call\n"
            "call('migrate', verbosity=0)\n"
            "call('horsies_import_simple_queue', '--dry-run')\n"
            f"call('horsies_import_simple_queue', '--batch', '2', '--in-progress', '{begun}')\n"
            "call('horsies_import_simple_queue')\n"
        )
        imported = manage("shell", "-v0", "-c", code, database=found)
        worked = manage("task_worker", "--batch", "--processes=1", database=found)
        with psycopg.connect(url) as new:
            rows = {
                row[0]: row[1:]
                for row in new.execute(
                    "select id, created, task, args, status, output, modified"
                    " from django_simple_queue_task"
                )
            }
            kept = new.execute(
                "select error, log from django_simple_queue_task where id = %s", [ids[3]]
            ).fetchone()
        back = manage("migrate", "-v0", "django_simple_queue", "0002", database=found)
        with psycopg.connect(url) as restored:
            after = restored.execute(
                "select * from django_simple_queue_task order by id"
            ).fetchall()

    assert (imported.returncode, worked.returncode) == (0, 0), imported.stderr + worked.stderr
    assert imported.stdout.splitlines()[-3:] == [
        "5 tasks would be imported",
        "5 tasks imported",
        "0 tasks imported",
    ]
    same = (then, f"{JOBS}.add", '{"a": 1, "b": 2}')
    assert rows[ids[0]][:-1] == (*same, 2, "3"), "the queued row has run"
    assert rows[ids[2]] == (*same, 2, "out 2", then)
    old_run = (3, "out 1") if begun == "fail" else (2, "3")
    assert rows[ids[1]][:-1] == (*same, *old_run), "an old worker had begun it"
    assert rows[ids[3]] == (*same, 3, "out 3", then)
    assert rows[ids[4]] == (*same, 4, "out 4", then)
    assert kept == (("broken", "said") if columns == 10 else (None, None))
    assert back.returncode == 0, back.stderr
    assert [row[:columns] for row in after] == [row[:columns] for row in before]


@pytest.mark.acceptance("E-40")
@pytest.mark.seed("S71", "S73")
def test_e40_a_backlog_is_worked_off_at_once(committed: None) -> None:
    worker = OldWorker(connection.settings_dict)
    try:
        worker.wait_ready()
        Task.objects.bulk_create(Task(task=f"{JOBS}.nothing", args="{}") for _ in range(500))
        waiting = Task.objects.exclude(status=Task.COMPLETED)
        # At one task per look, every three seconds at best, the original takes 25 minutes. The
        # limit is for a whole test run beside it: alone it takes a fraction of the 30 s of E-40.
        eventually(lambda: not waiting.exists(), within=100)
        worker.signal(signal.SIGTERM)
        code, said = worker.wait(), worker.log()
    finally:
        worker.close()

    attempts = TaskAttempt.objects.values_list("task_id", "worker_id", "worker_pid")
    assert code == 0
    assert "Task timeout configured: 3600 seconds" in said
    assert len(attempts) == len({task_id for task_id, *_ in attempts}) == 500, "each ran once"
    assert len({worker_id for _, worker_id, _ in attempts}) == 1
    assert worker.pid not in {pid for *_, pid in attempts}, "each ran in a subprocess"


class OldWorker(WorkerProcess):
    """`manage.py task_worker`, without any option."""

    command = "task_worker"
