"""E-01 to E-05: packaging, migrations, checks, several databases, lean settings."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.checks import run_checks
from django.core.management import call_command, get_commands
from django.db import connections
from django.test import override_settings

from horsies.contrib.django.schema import pending_migrations
from horsies.database.migrate import migrate
from support import cluster
from support.django_processes import environment, manage
from support.django_project.settings import database

ROOT = Path(__file__).parents[2]
LEAN = """
SECRET_KEY = "x"
INSTALLED_APPS = [
    "django.contrib.contenttypes", "horsies.contrib.django", "support.django_project.shop"]
MIDDLEWARE, TEMPLATES, ROOT_URLCONF, USE_TZ = [], [], None, True
TASKS = {"default": {"BACKEND": "horsies.contrib.django.HorsiesBackend"}}
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql"}}
"""
COMMANDS = {
    "horsies",
    "horsies_cancel",
    "horsies_health",
    "horsies_import_simple_queue",
    "horsies_prune",
    "horsies_requeue",
    "horsies_worker",
    "task_worker",
}


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute("select tablename from pg_tables where schemaname = 'public'")
        return {name for (name,) in found}


def errors(**settings: Any) -> list[str]:
    with override_settings(**settings):
        return [str(message.id) for message in run_checks() if str(message.id)[:7] == "horsies"]


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
    (tmp_path / "plain.py").write_text(
        LEAN.replace('"support.django_project.shop"', "") + "import os, json\n"
        'DATABASES["default"].update(json.loads(os.environ["HORSIES_DATABASE_SETTINGS"]))\n'
        'TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates",'
        ' "APP_DIRS": True}]\n'
    )
    code = (
        "import django, horsies; django.setup()\n"
        "from django.core.management import call_command, get_commands\n"
        "from django.template.loader import render_to_string\n"
        "from horsies.contrib.django.models import Task\n"
        "call_command('migrate', verbosity=0); call_command('check')\n"
        "shown = {'status': 'Completed', 'id': 'x'}\n"
        "html = render_to_string('horsies/task_status.html', {'task': Task(), 'shown': shown})\n"
        "import json; print(json.dumps([horsies.__file__, sorted(get_commands()), html]))\n"
    )
    with server.temporary_database() as url:
        env = environment(database(url)) | {
            "DJANGO_SETTINGS_MODULE": "plain",
            "PYTHONPATH": f"{unpacked}:{tmp_path}",
        }
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
        )

    assert done.returncode == 0, done.stderr
    place, commands, html = json.loads(done.stdout.splitlines()[-1])
    assert place.startswith(str(unpacked))
    assert set(commands) >= COMMANDS - {"task_worker", "horsies_import_simple_queue"}
    assert "Completed" in html


@pytest.mark.django_db
def test_e01_every_command_is_found() -> None:
    assert set(get_commands()) >= COMMANDS


def test_e02_migrations_are_complete_reversible_and_adopt_what_is_there(
    server: cluster.Server,
) -> None:
    with server.temporary_database() as url:
        with psycopg.connect(url) as connection:
            migrate(connection)  # the engine was here first
        before = tables(url)
        warned = manage("check", "--database=default", database=database(url)).stderr
        first = manage("migrate", "-v0", database=database(url)).stderr
        done = [
            manage(*words, database=database(url)).returncode
            for words in (
                ("makemigrations", "--check", "--dry-run"),
                ("migrate", "django_simple_queue", "zero", "-v0"),
                ("migrate", "horsies", "zero", "-v0"),
            )
        ]
        gone = {name for name in tables(url) if name.startswith("horsies_")}
        again = manage("migrate", "-v0", database=database(url)).returncode

        assert "horsies.W001" in warned
        assert first == "", "migrate itself needs no reminder to migrate"
        assert (done, again) == ([0] * 3, 0)
        assert gone == set()
        assert before <= tables(url)


def test_e03_checks_say_what_is_wrong() -> None:
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    done = manage("check", database=sqlite)

    assert "horsies.E001" in done.stderr
    assert errors(HORSIES={"NONSENSE": 1}) == ["horsies.E003"]
    assert errors(HORSIES={"TASK_TIMEOUT": "soon"}) == ["horsies.E004"]
    assert errors(HORSIES={"ENQUEUE": "sometimes"}) == ["horsies.E004"]
    assert errors(HORSIES={"STATUS_VIEW_ACCESS": "no.such.rule"}) == ["horsies.E004"]
    assert errors(HORSIES={"DATABASE_ALIAS": "nowhere"}) == ["horsies.E001"]


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

        assert not any(name.startswith("horsies") for name in tables(first))
        assert ran.returncode == 0, ran.stderr
        assert found == [(sent.stdout.split()[-1], "COMPLETED")]


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
    finally:
        call_command("migrate", "django_simple_queue", verbosity=0, fake=True)
