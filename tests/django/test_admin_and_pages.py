"""E-28 to E-32: admin, pages, commands for operators, helpers for tests."""

import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.core.asgi import get_asgi_application
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client, TestCase, TransactionTestCase, override_settings
from django.urls import reverse
from django.utils import timezone
from django_simple_queue.models import Task as SimpleTask
from django_simple_queue.utils import create_task
from starlette.applications import Starlette
from starlette.routing import Mount

from horsies import CronSchedule, ScheduleConfig, TaskSchedule
from horsies.contrib.django import project, testing
from horsies.contrib.django.actions import cancel
from horsies.contrib.django.models import (
    ReadOnlyModel,
    ScheduleState,
    Task,
    TaskAttempt,
    TaskLog,
)
from horsies.contrib.django.testing import (
    EnqueueRecorder,
    HorsiesWorkerMixin,
    assert_enqueued,
    run_pending,
)
from horsies.web import create_app
from support.django_project.shop import jobs, tasks
from support.django_project.shop.models import Note
from support.eventually import eventually

CHANGELIST = "admin:horsies_task_changelist"


def act(
    client: Client, action: str, *ids: str, model: str = "horsies_task", reason: str = ""
) -> str:
    """Choose rows and an action, as the page's form does; what the page then says."""
    data = {"action": action, "_selected_action": ids, "reason": reason}
    answer = client.post(reverse(f"admin:{model}_changelist"), data, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def fill(count: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into horsies_tasks "
            "(id, task_name, queue_name, status, enqueue_sha, completed_at) "
            " select gen_random_uuid()::text, 'shop.tasks.old', 'default', 'COMPLETED', 'x', now()"
            " from generate_series(1, %s)",
            [count],
        )
        cursor.execute("analyze horsies_tasks")


@pytest.mark.acceptance("E-28")
@pytest.mark.django_db
def test_e28_a_large_table_is_not_counted(
    admin_client: Client, django_assert_max_num_queries: Any
) -> None:
    fill(100_000)
    result = tasks.fail.enqueue("<script>alert(1)</script>")
    run_pending()
    with django_assert_max_num_queries(14) as queries:
        page = admin_client.get(reverse(CHANGELIST))
    with django_assert_max_num_queries(12):
        detail = admin_client.get(reverse("admin:horsies_task_change", args=[result.id]))

    assert page.status_code == detail.status_code == 200
    counts = [q["sql"] for q in queries.captured_queries if "COUNT(*)" in q["sql"]]
    assert counts
    assert all("LIMIT" in sql for sql in counts)
    text = detail.content.decode()
    assert "<script>alert(1)</script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "ValueError" in text


@pytest.mark.acceptance("E-28")
@pytest.mark.django_db
@pytest.mark.parametrize("what", ["add", "delete", "change"])
def test_e28_nothing_is_added_changed_or_deleted(admin_client: Client, what: str) -> None:
    result = tasks.add.enqueue(1, 2)
    args = [] if what == "add" else [result.id]

    answer = admin_client.post(reverse(f"admin:horsies_task_{what}", args=args), {"task_name": "x"})

    assert answer.status_code == 403
    assert Task.objects.get().task_name == tasks.add.module_path


@pytest.mark.django_db
def test_e28_search_by_the_beginning_of_an_id(admin_client: Client) -> None:
    result = tasks.add.enqueue(1, 2)
    found = admin_client.get(reverse(CHANGELIST), {"q": result.id[:13]}).content.decode()
    nothing = admin_client.get(reverse(CHANGELIST), {"q": "ffffff"}).content.decode()

    assert result.id in found
    assert result.id not in nothing


@pytest.mark.django_db
@pytest.mark.parametrize("is_by_name", [True, False])
def test_what_is_marked_secret_is_masked(admin_client: Client, is_by_name: bool) -> None:
    card = "4242-4242"
    result = tasks.charge.enqueue(7, card=card) if is_by_name else tasks.charge.enqueue(7, card)
    run_pending()
    pages = [
        admin_client.get(reverse("admin:horsies_task_change", args=[result.id])),
        admin_client.get(reverse("horsies:task", args=[result.id])),
        admin_client.get(reverse("horsies:task", args=[result.id]), {"type": "json"}),
    ]

    assert Task.objects.get(pk=result.id).status == "COMPLETED"
    assert [page.status_code for page in pages] == [200, 200, 200]
    assert [card in page.content.decode() for page in pages] == [False] * 3
    assert ["•••" in page.content.decode() for page in pages[:2]] == [True, True]
    assert pages[2].json()["output"] == "•••"


@pytest.mark.django_db
def test_what_is_marked_secret_is_masked_for_simple_queue(admin_client: Client) -> None:
    card = "4242-4242"
    task_id = create_task(f"{jobs.__name__}.charge", {"order": 7, "card": card})
    testing.run_one(str(task_id))
    page = admin_client.get(reverse("admin:django_simple_queue_task_change", args=[task_id]))

    assert SimpleTask.objects.get(pk=task_id).output == f"receipt of {card}, order 7"
    assert card not in page.content.decode()
    assert page.content.decode().count("•••") == 2


@pytest.mark.django_db
@pytest.mark.parametrize("task_id", ["2026/11/16", "..", "..\\q?", "a#b%2F", "~2F", "<b>"])
def test_an_id_that_is_no_uuid_is_shown_and_steered(admin_client: Client, task_id: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into horsies_tasks (id, task_name, queue_name, status, enqueue_sha)"
            " values (%s, 'by.hand', 'default', 'PENDING', 'x')",
            [task_id],
        )
    listed = admin_client.get(reverse(CHANGELIST))
    found = admin_client.get(reverse(CHANGELIST), {"q": task_id})
    page = admin_client.get(reverse("admin:horsies_task_change", args=[quote(task_id)]))
    status = admin_client.get(reverse("horsies:task", args=[task_id]), {"type": "json"})
    other = admin_client.get(reverse("admin:django_simple_queue_task_changelist"))
    said = act(admin_client, "cancel_tasks", task_id)

    answers = [listed, found, page, status, other]
    assert [answer.status_code for answer in answers] == [200] * 5
    assert reverse("horsies:task", args=[task_id]) in listed.content.decode()
    assert "by.hand" in found.content.decode()
    assert status.json()["id"] == task_id
    assert "1 task was cancelled" in said
    assert str(Task.objects.get(pk=task_id).pk) == task_id


@pytest.mark.django_db
def test_who_may_only_view_tasks_of_simple_queue_steers_none(admin_client: Client) -> None:
    model = "django_simple_queue_task"
    ended, waiting = (create_task("support.django_project.shop.jobs.nothing", {}) for _ in "12")
    testing.run_one(str(ended))
    user = User.objects.create_user("looks", is_staff=True)
    mine = Permission.objects.filter(content_type__app_label="django_simple_queue")
    user.user_permissions.set(mine.filter(codename="view_task"))
    client = Client()
    client.force_login(user)

    page = client.get(reverse(f"admin:{model}_changelist")).content.decode()
    act(client, "enqueue_tasks", str(ended), model=model)
    act(client, "cancel_tasks", str(waiting), model=model)
    states = [SimpleTask.objects.get(pk=one).status for one in (ended, waiting)]
    user.user_permissions.set(mine.filter(codename__in=("view_task", "change_task")))
    said = act(client, "cancel_tasks", str(waiting), model=model)

    assert str(ended) in page
    assert 'value="cancel_tasks"' not in page
    assert states == [SimpleTask.COMPLETED, SimpleTask.QUEUED]
    assert "1 task was cancelled" in said


def allowed(*permissions: str) -> Client:
    """Someone of the staff who may see tasks, and this."""
    user = User.objects.create_user("-".join(("viewer", *permissions)), is_staff=True)
    ours = Permission.objects.filter(content_type__app_label="horsies")
    user.user_permissions.set(ours.filter(codename__in=("view_task", *permissions)))
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.acceptance("E-29")
@pytest.mark.seed("S91", "S92", "S93")
@pytest.mark.django_db
def test_e29_enqueue_clears_what_ended_and_skips_what_runs(admin_client: Client) -> None:
    failed, done, cancelled, running = (
        tasks.fail.enqueue("x"),
        tasks.add.enqueue(1, 2),
        tasks.add.enqueue(3, 4),
        tasks.add.enqueue(5, 6),
    )
    old = create_task("support.django_project.shop.jobs.count_then_fail", {"to": 2})
    for task_id in (failed.id, done.id, str(old)):
        testing.run_one(task_id)
    act(admin_client, "cancel_tasks", cancelled.id)
    with override_settings(HORSIES={"READONLY_MODELS": False}):
        Task.objects.filter(pk=running.id).update(status="RUNNING", worker_pid=1)
    add_log(failed.id)
    before = Task.objects.get(pk=failed.id), SimpleTask.objects.get(pk=old)
    states = [Task.objects.get(pk=one.id).status for one in (failed, done, cancelled)]

    said = act(
        admin_client, "enqueue_tasks", failed.id, done.id, cancelled.id, str(old), running.id
    )

    again, again_old = Task.objects.get(pk=failed.id), SimpleTask.objects.get(pk=old)
    assert (before[0].error is None, before[0].log, before[1].output) == (False, "printed", "0;1;")
    assert states == ["FAILED", "COMPLETED", "CANCELLED"]
    assert "4 tasks were successfully enqueued." in said
    assert "1 task was skipped." in said
    assert Task.objects.get(pk=running.id).status == "RUNNING"
    assert {Task.objects.get(pk=one.id).status for one in (done, cancelled)} == {"PENDING"}
    assert Task.objects.get(pk=done.id).result is None
    assert (again.status, again.error, again.worker_pid, again.log) == ("PENDING", None, None, None)
    assert (again_old.status, again_old.error, again_old.output, again_old.log) == (0, *[None] * 3)


def add_log(task_id: str) -> None:
    """What a worker keeps of what the first attempt printed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into horsies_task_logs (task_id, attempt, log) values (%s, 1, 'printed')",
            [task_id],
        )


@pytest.mark.acceptance("E-29")
@pytest.mark.seed("S89")
@pytest.mark.django_db
def test_e29_cancel_withdraws_what_waits_and_asks_what_runs(admin_client: Client) -> None:
    waiting, running, done = (tasks.add.enqueue(number, 2) for number in range(3))
    testing.run_one(done.id)
    with override_settings(HORSIES={"READONLY_MODELS": False}):
        Task.objects.filter(pk=running.id).update(status="RUNNING", started_at=timezone.now())

    said = act(admin_client, "cancel_tasks", waiting.id, running.id, done.id)

    ran = run_pending()
    asked = Task.objects.get(pk=running.id)
    assert "2 tasks were cancelled or asked to end." in said
    assert "1 task was skipped." in said
    assert (Task.objects.get(pk=waiting.id).status, ran) == ("CANCELLED", 0)
    assert (asked.status, asked.cancel_requested_at is None) == ("RUNNING", False)


@pytest.mark.acceptance("E-29")
@pytest.mark.parametrize("permission", ["requeue_task", "cancel_task", None])
@pytest.mark.django_db
def test_e29_each_action_needs_its_permission(permission: str | None) -> None:
    ended, waiting = tasks.add.enqueue(1, 2), tasks.add.enqueue(3, 4)
    testing.run_one(ended.id)
    client = allowed(*([permission] if permission else []))

    page = client.get(reverse(CHANGELIST)).content.decode()
    act(client, "enqueue_tasks", ended.id)
    act(client, "cancel_tasks", waiting.id)

    may = {"requeue_task": ("enqueue_tasks", "copy_tasks"), "cancel_task": ("cancel_tasks",)}
    offered = {name for names in may.values() for name in names if f'value="{name}"' in page}
    assert offered == set(may.get(permission or "", ()))
    assert (Task.objects.get(pk=ended.id).status, Task.objects.get(pk=waiting.id).status) == (
        "PENDING" if permission == "requeue_task" else "COMPLETED",
        "CANCELLED" if permission == "cancel_task" else "PENDING",
    )


@pytest.mark.acceptance("E-29")
@pytest.mark.django_db
def test_e29_a_copy_is_a_new_task(admin_client: Client) -> None:
    done = tasks.add.enqueue(1, 2)
    run_pending()

    said = act(admin_client, "copy_tasks", done.id)

    assert "1 copy was enqueued." in said
    assert Task.objects.filter(rerun_of=done.id, status="PENDING").count() == 1


def audit() -> list[tuple[Any, ...]]:
    """Who did what to what, and why; the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute("select done_by, action, target, reason from horsies_audit order by id")
        return list(cursor.fetchall())


@pytest.mark.django_db(transaction=True)
def test_actions_are_audited_and_told_to_hooks_with_the_transaction(
    admin_client: Client, told_of: Callable[..., list[Any]], committed: None
) -> None:
    told = told_of("cancelled")
    waiting, kept, ended = (tasks.add.enqueue(number, 2) for number in range(3))
    testing.run_one(ended.id)
    with transaction.atomic():
        cancel([kept.id])
        transaction.set_rollback(True)
    with transaction.atomic():
        act(admin_client, "cancel_tasks", waiting.id, reason="sold out")
        before_commit = list(told)
    act(admin_client, "copy_tasks", ended.id, reason=" ")
    act(admin_client, "enqueue_tasks", ended.id, kept.id)
    call_command("horsies_requeue", waiting.id, "--by", "ann", "--reason", "in stock again")
    call_command("horsies_cancel", waiting.id, "--by", "ann")

    assert before_commit == []
    assert [(event.task_id, event.attempt) for event in told] == [(waiting.id, None)] * 2
    assert audit() == [
        ("admin", "cancel", f"tasks {waiting.id}", "sold out"),
        ("admin", "rerun", f"tasks {ended.id}", "in the admin of Django"),
        ("admin", "requeue", f"tasks {ended.id}, {kept.id}", "in the admin of Django"),
        ("ann", "requeue", f"tasks {waiting.id}", "in stock again"),
        ("ann", "cancel", f"tasks {waiting.id}", None),
    ]


@pytest.mark.django_db(transaction=True)
def test_actions_of_the_old_admin_are_audited(
    admin_client: Client, told_of: Callable[..., list[Any]], committed: None
) -> None:
    told = told_of("cancelled")
    task_id = str(create_task("support.django_project.shop.jobs.nothing", {}))
    model = "django_simple_queue_task"
    cancelled = act(admin_client, "cancel_tasks", task_id, model=model, reason="no need")
    enqueued = act(admin_client, "enqueue_tasks", task_id, model=model)
    again = act(admin_client, "enqueue_tasks", task_id, model=model)

    assert "1 task was cancelled." in cancelled
    assert "1 task was successfully enqueued." in enqueued
    assert "1 task was skipped." in again
    assert [event.task_id for event in told] == [task_id]
    assert audit() == [
        ("admin", "cancel", f"tasks {task_id}", "no need"),
        *[("admin", "requeue", f"tasks {task_id}", "in the admin of Django")] * 2,
    ]


def test_schedules_run_now(admin_client: Client, committed: None) -> None:
    from horsies.contrib.django.project import app

    @app.task("nightly report")
    def nightly() -> int:
        return 1

    schedule = TaskSchedule(
        name="nightly", task_name="nightly report", pattern=CronSchedule(expression="0 3 * * *")
    )
    before = app.config
    app.config = before.model_copy(update={"schedule": ScheduleConfig(schedules=[schedule])})
    try:
        with override_settings(HORSIES={"READONLY_MODELS": False}):
            ScheduleState.objects.create(
                schedule_name="nightly", run_count=0, updated_at=timezone.now()
            )
        said = act(
            admin_client,
            "run_now",
            "nightly",
            model="horsies_schedulestate",
            reason="it was left out",
        )
        noted = audit()
        runs = ScheduleState.objects.get(schedule_name="nightly").run_count
        found = Task.objects.filter(task_name="nightly report").count()
    finally:
        app.config = before
        app.get_broker().close()
        ScheduleState.objects.all()._raw_delete("default")

    assert "Nightly runs now" in said
    assert (found, runs) == (1, 1)
    assert noted == [("admin", "run", "schedule nightly", "it was left out")]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "urls", ["support.django_project.urls", "support.django_project.admin_urls"]
)
def test_every_list_of_the_admin_is_shown(admin_client: Client, urls: str) -> None:
    """Also in a project that does not include our pages."""
    result = tasks.add.enqueue(1, 2)
    create_task("support.django_project.shop.jobs.nothing", {})
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into horsies_worker_states (worker_id, snapshot_at, hostname, pid, processes,"
            " max_claim_batch, max_claim_per_worker, queues, tasks_running, tasks_claimed,"
            " worker_started_at) select 'w' || n, now() - n * interval '1 hour', 'host', n, 1, 1, 1"
            ", '{default}', 0, 0, now() from generate_series(0, 1) n"
        )
    lists = ("task", "workerstate", "schedulestate", "workflow")
    paths = [f"/admin/horsies/{name}/" for name in lists]
    paths += ["/admin/django_simple_queue/task/", f"/admin/horsies/task/{result.id}/change/"]
    with override_settings(ROOT_URLCONF=urls):
        pages = [admin_client.get(path) for path in paths]

    assert [page.status_code for page in pages] == [200] * 6
    text = pages[1].content.decode()
    assert (text.count(">Live<"), text.count(">Stale<")) == (1, 1)


# The columns of one row of each list.
ODD_ROWS = {
    "horsies_tasks": ("task_name = 'odd'", "sent_at enqueued_at started_at"),
    "horsies_worker_states": ("worker_id = 'w1'", "snapshot_at worker_started_at"),
    "horsies_schedule_state": ("schedule_name = 'odd'", "next_run_at last_run_at paused_at"),
    "horsies_workflows": ("name = 'odd'", "sent_at started_at"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("instant", ["infinity", "-infinity", "4000-01-01 BC", "200000-01-01"])
def test_one_odd_row_blinds_no_list(admin_client: Client, instant: str) -> None:
    odd, sound = (str(tasks.add.enqueue(1, number).id) for number in range(2))
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into horsies_worker_states (worker_id, snapshot_at, hostname, pid, processes,"
            " max_claim_batch, max_claim_per_worker, queues, worker_started_at) select 'w' || n,"
            " now(), 'host-' || n, n, 1, 1, 1, '{NULL}', now() from generate_series(0, 1) n"
        )
        cursor.execute(
            "insert into horsies_schedule_state (schedule_name) values ('odd'), ('sound')"
        )
        cursor.execute(
            "insert into horsies_workflows (id, name) select gen_random_uuid()::text, n "
            "from unnest(array['odd', 'sound']) n"
        )
        cursor.execute(
            "update horsies_tasks set task_name = 'odd', status = 'FROZEN', "
            "args = repeat('[', 5000) where id = %s",
            [odd],
        )
        for table, (which, columns) in ODD_ROWS.items():
            for column in columns.split():
                cursor.execute(f"update {table} set {column} = %s where {which}", [instant])

    lists = {"task": sound[:13], "workerstate": "host-0"}
    lists |= {"schedulestate": "sound", "workflow": "sound"}
    pages = {name: admin_client.get(f"/admin/horsies/{name}/") for name in lists}
    detail = admin_client.get(f"/admin/horsies/task/{odd}/change/")

    assert {name: page.status_code for name, page in pages.items()} == dict.fromkeys(lists, 200)
    assert [name for name, page in pages.items() if lists[name] not in page.content.decode()] == []
    assert detail.status_code == 200
    assert ask_health()[0] in (0, 1)


def ask_health(*options: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the answer of the command."""
    said = io.StringIO()
    try:
        call_command("horsies_health", *options, stdout=said)
    except SystemExit as ended:
        return int(str(ended.code)), json.loads(said.getvalue())
    return 0, json.loads(said.getvalue())


@pytest.mark.acceptance("E-30")
def test_e30_health_says_what_is_missing(start_worker: Callable[..., Any], client: Client) -> None:
    alone = ask_health()
    unhealthy = client.get("/horsies/healthz")
    start_worker("--processes", "1", "--queue-name", "default")
    well = ask_health("--max-backlog", "0", "--max-lag", "5")
    healthy = client.get("/horsies/healthz")
    waiting = tasks.add.using(queue_name="low").enqueue(1, 2)
    with override_settings(HORSIES={"READONLY_MODELS": False}):
        Task.objects.filter(pk=waiting.id).update(enqueued_at=timezone.now() - timedelta(hours=1))
    backlog = ask_health("--max-backlog", "0")
    lag = ask_health("--max-lag", "60")

    assert (alone[0], alone[1]["problems"]) == (1, ["no worker answers"])
    assert (unhealthy.status_code, unhealthy.json()["status"]) == (503, "error")
    assert (well[0], well[1]["workers"]) == (0, 1)
    assert (healthy.status_code, healthy.json()["status"]) == (200, "ok")
    assert (backlog[0], backlog[1]["problems"]) == (1, ["1 tasks wait, more than 0"])
    assert (lag[0], len(lag[1]["problems"])) == (1, 1)
    assert "the oldest task waits for" in lag[1]["problems"][0]


@pytest.mark.acceptance("E-30")
@pytest.mark.django_db
def test_e30_pending_migrations_are_unhealthy() -> None:
    call_command("migrate", "django_simple_queue", "0002", verbosity=0, fake=True)
    code, found = ask_health()

    assert code == 1
    assert found["problems"] == ["the database lacks django_simple_queue.0003_on_horsies"]


@pytest.mark.acceptance("E-31")
@pytest.mark.django_db
def test_e31_prune_by_age(capsys: pytest.CaptureFixture[str]) -> None:
    ages = {"old": 20, "new": 10, "old failure": 40, "new failure": 20}
    for name, days in ages.items():
        result = (tasks.fail if "failure" in name else tasks.add).enqueue(
            *([name] if "failure" in name else [1, 2])
        )
        testing.run_one(result.id)
        add_log(result.id)
        then = timezone.now() - timedelta(days=days)
        with override_settings(HORSIES={"READONLY_MODELS": False}):
            column = "failed_at" if "failure" in name else "completed_at"
            Task.objects.filter(pk=result.id).update(**{column: then})
    waiting = tasks.add.enqueue(1, 2)
    options = ("--min-age-days", "14", "--failed-min-age-days", "30")
    call_command("horsies_prune", *options, "--dry-run")
    counted = Task.objects.count()
    call_command("horsies_prune", *options)

    assert capsys.readouterr().out.splitlines() == ["2 tasks would be deleted", "2 tasks deleted"]
    assert counted == 5
    assert Task.objects.count() == 3
    assert Task.objects.filter(pk=waiting.id).exists()
    assert TaskAttempt.objects.count() == TaskLog.objects.count() == 2


@pytest.mark.acceptance("E-32")
class InsideATestCaseTests(TestCase):
    """The helpers work inside a plain TestCase."""

    def test_e32_run_pending_runs_in_the_transaction(self) -> None:
        with EnqueueRecorder() as recorder:
            tasks.write.enqueue("inside")
        ran = run_pending()

        assert ran == 1
        assert Note.objects.get().text == "inside"
        assert [row.task_name for row in recorder.tasks] == [tasks.write.module_path]
        assert_enqueued(tasks.write, args=["inside"], times=1)
        with pytest.raises(AssertionError, match="not enqueued"):
            assert_enqueued(tasks.write, args=["outside"])

    def test_e32_effects_roll_back(self) -> None:
        with transaction.atomic():
            result = tasks.write.enqueue("for a moment")
            run_pending()
            ended = Task.objects.get(pk=result.id).status
            transaction.set_rollback(True)

        assert ended == "COMPLETED"
        assert not Note.objects.exists()
        assert not Task.objects.exists()

    def test_e32_eager_runs_at_once(self) -> None:
        with override_settings(HORSIES={"EAGER": True}):
            result = tasks.write.enqueue("eager")
        result.refresh()

        assert result.return_value == "eager"

    def test_e32_eager_runs_at_the_commit_when_that_enqueues(self) -> None:
        with (
            override_settings(HORSIES={"EAGER": True, "ENQUEUE": "on_commit"}),
            self.captureOnCommitCallbacks(execute=True),
        ):
            tasks.write.enqueue("eager")
            before = Note.objects.count()

        assert (before, Note.objects.count()) == (0, 1)


@pytest.mark.acceptance("E-32")
class WithARealWorkerTests(HorsiesWorkerMixin, TransactionTestCase):
    def test_e32_the_mixin_starts_a_worker(self) -> None:
        with self.horsies_worker("--processes", "1"):
            tasks.write.enqueue("by mixin")
            eventually(lambda: Note.objects.filter(text="by mixin").exists(), within=20)

        assert not Task.objects.exists(), "it tidies up"


@pytest.mark.acceptance("E-32")
def test_e32_the_fixtures_work(horsies_run_pending: Callable[..., int]) -> None:
    tasks.write.enqueue("by fixture")

    assert horsies_run_pending() == 1
    assert Note.objects.get().text == "by fixture"


@pytest.mark.acceptance("E-32")
def test_e32_a_real_worker_by_fixture(horsies_worker: Callable[..., Any]) -> None:
    horsies_worker("--processes", "1")
    tasks.write.enqueue("by worker")

    eventually(lambda: Note.objects.filter(text="by worker").exists(), within=20)


@pytest.mark.django_db
def test_models_are_read_only() -> None:
    result = tasks.add.enqueue(1, 2)
    row = Task.objects.get(pk=result.id)

    for write in (
        row.save,
        row.delete,
        Task.objects.all().delete,
        lambda: Task.objects.update(status="x"),
    ):
        with pytest.raises(ReadOnlyModel, match="belong to the engine"):
            write()
    assert row.cancel()
    assert row.requeue()
    run_pending()
    row.refresh_from_db()
    assert (row.result, row.output) == (3, "3")


@pytest.mark.django_db
def test_the_status_page_shows_one_task_to_staff(admin_client: Client, client: Client) -> None:
    result = tasks.write.enqueue("<b>bold</b>")
    run_pending()
    url = reverse("horsies:task", args=[result.id])
    shown = admin_client.get(url, {"type": "json"}).json()
    page = admin_client.get(url).content.decode()
    missing = admin_client.get(reverse("horsies:task", args=["123"]))
    with override_settings(HORSIES={"STATUS_VIEW_ACCESS": "staff"}):
        stranger = client.get(url)

    assert (shown["status"], shown["output"], shown["worker_pid"]) == (
        "Completed",
        "<b>bold</b>",
        None,
    )
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert (missing.status_code, missing["Content-Type"]) == (404, "application/json")
    assert stranger.status_code == 302


@pytest.mark.django_db(transaction=True)
async def test_the_dashboard_is_served_beside_django() -> None:
    """As docs/how-to/dashboard.md says: one ASGI application, and each has its path."""
    both = Starlette(
        routes=[
            Mount("/queue", create_app(project.app)),
            Mount("/", get_asgi_application()),
        ]
    )
    transport = httpx.ASGITransport(both, client=("127.0.0.1", 4711))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        dashboard = await client.get("/queue/workers")
        django = await client.get("/admin/login/")

    assert (dashboard.status_code, django.status_code) == (200, 200)
    assert 'href="/queue/tasks"' in dashboard.text
    assert "Django" in django.text
