"""`horsies schedule`: what people see, exit codes, and bad input."""

import json
import subprocess

import pytest

from support.database import Database
from support.schedulers import APP
from support.workers import run_horsies

UTC = ("--tz", "UTC")


def run(url: str, action: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_horsies("schedule", action, APP, *arguments, url=url)


def test_list_and_show_say_when_in_words(database_url: str) -> None:
    listed = run(database_url, "list", *UTC)
    shown = run(database_url, "show", "s0", "--count", "2", "--tz", "Asia/Kolkata")

    assert (listed.returncode, shown.returncode) == (0, 0), listed.stderr + shown.stderr
    assert "every hour" in listed.stdout
    assert shown.stdout.count("next ") == 2
    assert "IST" in shown.stdout


def test_pause_and_resume(database_url: str) -> None:
    assert run(database_url, "pause", "s0", "--reason", "stock-taking").returncode == 0
    assert "paused: stock-taking" in run(database_url, "list").stdout
    assert "goes on" in run(database_url, "resume", "s0").stdout
    assert run(database_url, "resume", "s0").returncode == 1


def test_backfill_asks_and_doubles_nothing(database_url: str, db: Database) -> None:
    span = ("s0", "--from", "2020-01-01", "--to", "2020-01-01T02:00", *UTC)

    asked = run(database_url, "backfill", *span)
    assert asked.returncode == 1
    assert "2 slot(s) to send" in asked.stdout
    assert db.value("select count(*) from horsies_tasks") == 0

    assert "2 run(s) sent" in run(database_url, "backfill", *span, "--yes").stdout
    assert "0 run(s) sent" in run(database_url, "backfill", *span, "--yes").stdout
    history = json.loads(run(database_url, "history", "s0", "--json").stdout)
    assert [row["reason"] for row in history] == ["backfilled"] * 2


def test_add_run_and_remove(database_url: str) -> None:
    added = run(database_url, "add", "nightly", "--task", "report", "--cron", "30 2 * * *")
    assert "nightly is added" in added.stdout, added.stderr
    assert "sent " in run(database_url, "run", "nightly").stdout
    assert "run by hand" in run(database_url, "history", "nightly").stdout
    assert "is removed" in run(database_url, "remove", "nightly", "--yes").stdout


def test_change_keeps_what_is_not_named(database_url: str) -> None:
    first = ("--task", "report", "--weekly", "mon,fri@09:00", "--max-catch-up-runs", "7")
    assert run(database_url, "add", "added", *first, "--deadline", "60").returncode == 0

    changed = run(
        database_url, "change", "added", "--monthly", "31@08:30", "--timezone", "Asia/Kolkata",
        "--overlap", "skip", "--jitter", "5", "--start", "2040-01-01", "--end", "2041-01-01T00:00Z",
        "--catch-up", "--deadline", "none",
    )  # fmt: skip

    assert "added is changed; next run: " in changed.stdout, changed.stderr
    (shown,) = [
        info
        for info in json.loads(run(database_url, "list", "--json").stdout)
        if info["is_dynamic"]
    ]
    definition = shown["definition"]
    assert shown["words"].startswith("every month on day 31 at 08:30")
    assert (definition["task_name"], definition["max_catch_up_runs"]) == ("report", 7)
    assert (definition["overlap"], definition["jitter_seconds"]) == ("skip", 5)
    assert definition["start_at"] == "2040-01-01T00:00:00+05:30"
    assert (definition["catch_up_missed"], definition["deadline_seconds"]) == (True, None)
    assert shown["next_run_at"].startswith("2040-01-31T03:00:00")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pause", "gone"), "no schedule 'gone'"),
        (("remove", "s0", "--yes"), "in code"),
        (("list", "--tz", "Mars/Olympus"), "unknown timezone"),
        (("history", "gone"), "no schedule 'gone'"),
        (("backfill", "s0", "--from", "2026-02-30", "--to", "2026-03-01"), "out of range"),
        (("change", "gone", "--every", "1h"), "no schedule 'gone'"),
        (("change", "s0", "--every", "1h"), "in code"),
        (("add", "x", "--task", "report"), "give one of --cron"),
        (("add", "x", "--task", "report", "--cron", "* * * * *", "--every", "1h"), "only one of"),
        (("add", "x", "--task", "report", "--daily", "25:00"), "hour must be in 0..23"),
        (("add", "x", "--task", "report", "--weekly", "mon,xyz@09:00"), "no day of the week"),
        (("add", "x", "--task", "report", "--monthly", "32@09:00"), "less than or equal to 31"),
        (("add", "x", "--task", "report", "--every", "1h", "--timezone", "Mars/X"), "unknown"),
        (("add", "x", "--task", "report", "--every", "1h", "--start", "2030-02-30"), "no time"),
        (("add", "x", "--task", "report", "--every", "1h", "--jitter", "-1"), "--jitter"),
        (("add", "x", "--workflow", "w", "--every", "1h", "--jitter", "1"), "a workflow"),
        (("add", "x", "--task", "report", "--every", "1h", "--args", "[1]"), "do not fit"),
        (
            (
                "add",
                "x",
                "--task",
                "report",
                "--every",
                "1h",
                "--start",
                "2030-01-02",
                "--end",
                "2030-01-01",
            ),
            "ends before it starts",
        ),
        (("add", "x", "--task", "report", "--every", "soon"), "no interval"),
        (("remove", "x"), "nobody is there to answer; add --yes"),
        (("add", "x", "--task", "report", "--cron", "0 0 30 2 *"), "invalid cron expression"),
        (("add", "x", "--task", "gone", "--every", "1h"), "not registered"),
        (("add", "x", "--task", "report", "--every", "1h", "--kwargs", "["), "not JSON"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_said_without_a_traceback(
    database_url: str, arguments: tuple[str, ...], said: str
) -> None:
    done = run(database_url, *arguments)

    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
