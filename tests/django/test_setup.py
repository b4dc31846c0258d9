"""E-01 to E-05: packaging, migrations, checks, several databases, lean settings."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import override_settings

from horsies.contrib.django.project import app, import_task_modules
from horsies.contrib.django.schema import pending_migrations
from horsies.database.migrate import migrate
from support import cluster
from support.django_processes import environment, manage
from support.django_project.settings import database
from support.django_project.shop.apps import given

ROOT = Path(__file__).parents[2]
LEAN = """
SECRET_KEY = "x"
INSTALLED_APPS = [
    "django.contrib.contenttypes", "horsies.contrib.django", "support.django_project.shop"]
MIDDLEWARE, TEMPLATES, ROOT_URLCONF, USE_TZ = [], [], None, True
TASKS = {"default": {"BACKEND": "horsies.contrib.django.HorsiesBackend"}}
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql"}}
"""
# The least that Django asks of a project, and our one app.
PLAIN = """
import json, os
SECRET_KEY = "x"
INSTALLED_APPS = ["django.contrib.contenttypes", "horsies.contrib.django"]
DATABASES = {"default": json.loads(os.environ["HORSIES_DATABASE_SETTINGS"])}
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
"""
OF_SIMPLE_QUEUE = {"horsies_import_simple_queue", "task_worker"}
COMMANDS = {
    "horsies",
    "horsies_cancel",
    "horsies_health",
    "horsies_prune",
    "horsies_requeue",
    "horsies_worker",
    *OF_SIMPLE_QUEUE,
}


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute("select tablename from pg_tables where schemaname = 'public'")
        return {name for (name,) in found}


def engine_schema(url: str) -> set[tuple[int, str, str]]:
    """The engine's tables as the server knows them, and its migrations: made anew, they differ."""
    with psycopg.connect(url) as connection:
        made = connection.execute(
            "select c.oid::bigint, c.relname, string_agg(a.attname, ',' order by a.attnum)"
            " from pg_class c join pg_attribute a on a.attrelid = c.oid"
            " where c.relkind = 'r' and c.relname like 'horsies\\_%' group by c.oid"
        ).fetchall()
        applied = connection.execute(
            "select to_jsonb(s)::text from horsies_schema_version s"
        ).fetchall()
        return {*made, *((0, "horsies_schema_version", text) for (text,) in applied)}


def errors(*, deploy: bool = False, **settings: Any) -> list[str]:
    with override_settings(**settings):
        found = run_checks(include_deployment_checks=deploy)
        return [str(message.id) for message in found if str(message.id)[:7] == "horsies"]


@pytest.mark.acceptance("E-01")
@pytest.mark.slow
def test_e01_a_built_wheel_works_with_no_other_setting(
    tmp_path: Path, server: cluster.Server
) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-cache-dir", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--wheel-dir", tmp_path, str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    unpacked = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "simple.py").write_text(
        f'{PLAIN}INSTALLED_APPS.append("horsies.contrib.django.simple_queue")\n'
    )
    code = (
        "import django, horsies; django.setup()\n"
        "from django.core.management import call_command, get_commands\n"
        "from django.template.loader import render_to_string\n"
        "call_command('migrate', verbosity=0); call_command('check')\n"
        "import sys; label = sys.argv[1]\n"
        "from django.apps import apps; task = apps.get_model(label, 'Task')()\n"
        "shown = {'status': 'Queued', 'id': 'x'}\n"
        "html = render_to_string(f'{label}/task_status.html', {'task': task, 'shown': shown})\n"
        "import json; print(json.dumps([horsies.__file__, sorted(get_commands()), html]))\n"
    )

    def run(settings: str, label: str) -> tuple[str, list[str], str]:
        with server.temporary_database() as url:
            env = environment(database(url)) | {
                "DJANGO_SETTINGS_MODULE": settings,
                "PYTHONPATH": f"{unpacked}:{tmp_path}",
            }
            command = [sys.executable, "-c", code, label]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        place, commands, html = json.loads(done.stdout.splitlines()[-1])
        return place, commands, html

    place, commands, html = run("plain", "horsies")
    _, all_commands, old_html = run("simple", "django_simple_queue")

    assert place.startswith(str(unpacked))
    assert set(commands) >= COMMANDS - OF_SIMPLE_QUEUE
    assert set(all_commands) >= COMMANDS
    assert "Queued" in html
    assert "Queued" in old_html


@pytest.mark.acceptance("E-02")
def test_e02_migrations_are_complete_reversible_and_adopt_what_is_there(
    server: cluster.Server,
) -> None:
    with server.temporary_database() as url:
        with psycopg.connect(url) as connection:
            migrate(connection)  # the engine was here first
        before = engine_schema(url)
        warned = manage("check", "--database=default", database=database(url)).stderr
        first = manage("migrate", "-v0", database=database(url)).stderr
        adopted = engine_schema(url)
        changes = manage("makemigrations", "--check", "--dry-run", database=database(url))
        done = [
            manage(*words, database=database(url)).returncode
            for words in (
                ("migrate", "django_simple_queue", "zero", "-v0"),
                ("migrate", "horsies", "zero", "-v0"),
            )
        ]
        gone = {name for name in tables(url) if name.startswith("horsies_")}
        again = manage("migrate", "-v0", database=database(url)).returncode

        assert "horsies.W001" in warned
        assert first == "", "migrate itself needs no reminder to migrate"
        assert adopted == before, "the same tables, columns and migrations as the engine made"
        assert (changes.returncode, changes.stdout.strip()) == (0, "No changes detected")
        assert (done, again) == ([0, 0], 0)
        assert gone == set()
        assert {name for _, name, _ in before} <= tables(url)


@pytest.mark.acceptance("E-03")
def test_e03_checks_say_what_is_wrong() -> None:
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    done = manage("check", database=sqlite)

    assert "horsies.E001" in done.stderr
    assert errors(HORSIES={"NONSENSE": 1}) == ["horsies.E003"]
    assert errors(HORSIES={"TASK_TIMEOUT": "soon"}) == ["horsies.E004"]
    assert errors(HORSIES={"ENQUEUE": "sometimes"}) == ["horsies.E004"]
    assert errors(HORSIES={"STATUS_VIEW_ACCESS": "no.such.rule"}) == ["horsies.E004"]
    assert errors(HORSIES={"DATABASE_ALIAS": "nowhere"}) == ["horsies.E001"]
    backend = {"BACKEND": "horsies.contrib.django.HorsiesBackend", "OPTIONS": {"speed": 9}}
    assert errors(TASKS={"default": backend}) == ["horsies.E003"]


def test_checks_warn_of_what_is_allowed_but_unwise(monkeypatch: pytest.MonkeyPatch) -> None:
    careful = {"STATUS_VIEW_ACCESS": "staff", "ALLOWED_CALLABLES": ["shop.jobs.add"]}

    assert errors(deploy=True) == ["horsies.W003", "horsies.W004"], "with the compatibility app"
    assert errors(deploy=True, HORSIES=careful) == []
    monkeypatch.setitem(settings.DATABASES["default"], "ATOMIC_REQUESTS", True)
    assert errors(HORSIES={"ENQUEUE": "autocommit"}) == ["horsies.W002"]


def test_tasks_are_found_where_the_settings_say() -> None:
    ready = "support.django_project.shop.apps.take_app"
    sys.modules.pop("support.django_project.shop.jobs", None)
    with override_settings(
        HORSIES={"IMPORT_PATHS": ["support.django_project.shop.jobs"], "ON_APP_READY": ready}
    ):
        import_task_modules()

    assert "support.django_project.shop.jobs" in sys.modules
    assert given == [app]


def test_the_alias_wants_the_name_for_itself(tmp_path: Path) -> None:
    (tmp_path / "django_simple_queue.py").touch()
    code = "from horsies.contrib.django.simple_queue import install_alias as i; i()"
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "uninstall it before install_alias()" in done.stderr


@pytest.mark.acceptance("E-04")
def test_e04_a_second_database_has_the_tables_alone(server: cluster.Server) -> None:
    with server.temporary_database() as first, server.temporary_database() as second:
        settings: dict[str, Any] = {
            "DATABASES": {"default": database(first), "jobs": database(second)},
            "DATABASE_ROUTERS": ["horsies.contrib.django.routers.HorsiesRouter"],
            "HORSIES": {"DATABASE_ALIAS": "jobs"},
        }
        for alias in ("default", "jobs"):
            done = manage(
                "migrate", "-v0", "--database", alias, database=database(second), **settings
            )
            assert done.returncode == 0, done.stderr
        code = "from support.django_project.shop.tasks import add; print(add.enqueue(1, 2).id)"
        sent = manage("shell", "-v0", "-c", code, database=database(second), **settings)
        ran = manage(
            "horsies_worker", "--batch", "--processes=1", database=database(second), **settings
        )
        with psycopg.connect(second) as connection:
            found = connection.execute("select id, status from horsies_tasks").fetchall()

        ours = ("horsies", "django_simple_queue")
        assert not [name for name in tables(first) if name.startswith(ours)]
        assert ran.returncode == 0, ran.stderr
        assert found == [(sent.stdout.split()[-1], "COMPLETED")]


@pytest.mark.acceptance("E-05")
def test_e05_a_worker_runs_under_lean_settings(tmp_path: Path, server: cluster.Server) -> None:
    (tmp_path / "lean.py").write_text(LEAN)
    with server.temporary_database() as url:
        env = environment(database(url))
        env |= {
            "DJANGO_SETTINGS_MODULE": "lean",
            "PYTHONPATH": f"{tmp_path}:{env['PYTHONPATH']}",
        }
        command = [sys.executable, "-m", "horsies.contrib.django.test_worker"]
        words = (
            ("migrate", "-v0"),
            (
                "shell",
                "-v0",
                "-c",
                "from support.django_project.shop.tasks import *; write.enqueue('lean')",
            ),
            ("horsies_worker", "--batch", "--processes=1"),
        )
        done = [
            subprocess.run([*command, *one], env=env, capture_output=True, text=True, check=False)
            for one in words
        ]
        with psycopg.connect(url) as connection:
            notes = connection.execute("select text from shop_note").fetchall()

        assert [one.returncode for one in done] == [0, 0, 0], done[-1].stderr
        assert notes == [("lean",)]


@pytest.mark.django_db
def test_pending_migrations_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pending_migrations() == []
    call_command("migrate", "django_simple_queue", "0002", verbosity=0, fake=True)
    try:
        assert pending_migrations() == ["django_simple_queue.0003_on_horsies"]
        databases = list(connections)
        messages = run_checks(databases=databases)
        assert "horsies.W001" in [message.id for message in messages]
        for options in ((), ("--wait-for-migrations", "0.1")):
            with pytest.raises(CommandError, match="lacks django_simple_queue"):
                call_command("horsies_worker", "--no-reload", *options)
    finally:
        call_command("migrate", "django_simple_queue", verbosity=0, fake=True)
