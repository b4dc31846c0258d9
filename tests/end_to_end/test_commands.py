"""`horsies ping`, `migrate` and `check` as processes."""

from pathlib import Path

import psycopg
import pytest

from support.workers import APP_FILE, run_horsies

APP = f"{APP_FILE}:app"


def test_ping_without_a_database_exits_one() -> None:
    done = run_horsies("ping", APP, "--timeout-ms", "500", url="postgresql://127.0.0.1:9/none")

    assert done.returncode == 1
    assert "database" in done.stderr


@pytest.mark.seed("S136")
def test_migrate_creates_what_is_missing_once(empty_database_url: str) -> None:
    def migrate(*options: str) -> tuple[int, str]:
        done = run_horsies("migrate", APP, *options, url=empty_database_url)
        return done.returncode, done.stdout

    before, first, second, after = (
        migrate("--check"), migrate(), migrate(), migrate("--check"),
    )  # fmt: skip

    assert before[0] == 1
    assert "missing: 0001_tasks" in before[1]
    assert first[0] == 0
    assert "applied: 0001_tasks" in first[1]
    assert second == (0, "up to date\n")
    assert after == (0, "up to date\n")


def test_migrate_sql_is_the_whole_schema_and_needs_no_app(empty_database_url: str) -> None:
    printed = run_horsies("migrate", "--sql")
    with psycopg.connect(empty_database_url) as connection:
        connection.execute(printed.stdout.encode())
    checked = run_horsies("migrate", APP, "--check", url=empty_database_url)

    assert printed.returncode == 0
    assert (checked.returncode, checked.stdout) == (0, "up to date\n")


def test_check_counts_the_tasks(database_url: str) -> None:
    done = run_horsies("check", APP, "--live", url=database_url)

    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "ok: all validations passed"
    assert "task(s) registered" in done.stdout


def test_check_shows_every_problem_and_exits_one(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from horsies import Horsies\n"
        "from horsies.config import AppConfig, PostgresConfig\n"
        "app = Horsies(AppConfig(broker=PostgresConfig(database_url='mysql://x')))\n"
    )

    done = run_horsies("check", "shop.py", directory=tmp_path)

    assert done.returncode == 1
    assert "not a PostgreSQL URL" in done.stderr
    assert "Traceback" not in done.stderr


def test_live_check_needs_the_database(database_url: str) -> None:
    done = run_horsies("check", APP, "--live", url="postgresql://127.0.0.1:9/none")

    assert done.returncode == 1
