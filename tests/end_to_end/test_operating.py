"""The commands that see and steer: what they print, JSON, exit codes, answers to bad input."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from horsies.cli.main import horsies
from support.command import run_horsies
from support.database import Database, connect
from support.scenes import plant_shop, task_id

Run = Callable[..., Result]


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    db = connect(database_url)
    plant_shop(db)
    yield db
    db.connection.close()


@pytest.fixture
def run(db: Database, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process, as `horsies` would."""
    monkeypatch.setenv("HORSIES_DATABASE_URL", database_url)
    monkeypatch.setenv("COLUMNS", "160")

    def run(*words: str, answer: str | None = None) -> Result:
        return CliRunner().invoke(horsies, list(words), input=answer, prog_name="horsies")

    return run


def test_json_has_what_programs_need(run: Run) -> None:
    page = json.loads(run("tasks", "status:failed", "--limit", "1", "--json").stdout)
    task = json.loads(run("task", "0028", "--json").stdout)
    count = json.loads(run("tasks", "status:failed", "--count", "--json").stdout)

    assert [one["id"] for one in page["tasks"]] == [task_id(40)]
    assert page["next_before"].endswith(task_id(40))
    assert task["logs"][0]["log"] == "WARNING shop: order 40: no funds\n"
    assert "Declined: no funds" in task["info"]["attempts"][0]["traceback"]
    assert "  Declined: no funds" in run("task", "0028").stdout
    assert count == {"number": 4, "is_least": False}
    for command in ("status", "queues", "workers"):
        assert json.loads(run(command, "--json").stdout)


def test_a_page_goes_on_where_the_last_one_ended(run: Run) -> None:
    before = json.loads(run("tasks", "status:failed", "--limit", "3", "--json").stdout)

    rest = run("tasks", "status:failed", "--before", before["next_before"])

    assert task_id(10) in rest.stdout
    assert task_id(20) not in rest.stdout


@pytest.mark.parametrize(
    ("words", "code", "answer"),
    [
        (["tasks", "status:broken"], 2, "'broken' is no status; allowed are pending"),
        (["tasks", "queues:x"], 1, "no module named 'queues'"),
        (["tasks", "status:failed", "colour:red"], 2, "'colour:red' is no filter"),
        (["tasks", "status:failed", "--before", "x"], 1, "is not where a page of these tasks"),
        (["task", "ffff"], 1, "there is no task ffff"),
        (["task", "000"], 1, "000 is the beginning of several ids:"),
        (["queues", "--window", "long"], 2, "--window:long is no time"),
        (["requeue", "status:running"], 2, "are FAILED, CANCELLED, not RUNNING"),
        (["cancel", "--id", "000"], 1, "000 is the beginning of several ids:"),
        (["cancel", "--id", "0028"], 1, "not cancelled: it is FAILED; cancel is for tasks"),
        (["delete", "--all-apps", "--json"], 2, "--json cannot ask: add --yes, or --dry-run"),
        (["delete", "status:pending"], 2, "FAILED, not PENDING"),
        (["reschedule", "--all-apps"], 2, "missing option '--at'"),
        (["reschedule", "--all-apps", "--at", "soon"], 2, "--at:soon is no time"),
        (["reprioritise", "--priority", "101"], 2, "is not in the range 1<=x<=100"),
        (["reprioritise", "--priority", "0"], 2, "is not in the range 1<=x<=100"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_answered_with_its_cure(
    run: Run, words: list[str], code: int, answer: str
) -> None:
    result = run(*words)

    said = result.output.lower() + str(result.exception).lower()
    assert answer.lower() in said
    assert result.exit_code == code


def test_bulk_commands_take_filter_words(run: Run, db: Database) -> None:
    cancelled = run("cancel", "queue:mail", "--all-apps", "--yes")
    requeued = run("requeue", "error:CARD_*", "kwargs.order=40", "--all-apps", answer="y\n")

    assert "3 task(s) match\n3 task(s) cancelled" in cancelled.stdout
    assert "1 task(s) requeued" in requeued.stdout
    assert (db.status(task_id(41)), db.status(task_id(40))) == ("CANCELLED", "PENDING")


CHANGES = {
    "reschedule": (["reschedule", "--at", "2h"], "queue:mail", 41, "3 task(s) rescheduled"),
    "reprioritise": (["reprioritise", "--priority", "7"], "queue:mail", 41, "3 task(s) repr"),
    "delete": (["delete"], "error:CARD_*", 40, "4 task(s) deleted"),
}


@pytest.mark.parametrize(("words", "wanted", "one", "answer"), CHANGES.values(), ids=CHANGES)
def test_each_change_counts_asks_and_says_what_it_did(
    run: Run, db: Database, words: list[str], wanted: str, one: int, answer: str
) -> None:
    def state() -> object:
        row = db.execute("select * from horsies_tasks where id = %s", task_id(one))
        return [(each["priority"], each["enqueued_at"]) for each in row]

    before = state()
    dry = json.loads(run(*words, wanted, "--all-apps", "--dry-run", "--json").stdout)
    refused = run(*words, wanted, "--all-apps", answer="n\n")
    assert (refused.exit_code, state()) == (1, before)
    single = run(*words, "--id", task_id(one)[:4], "--reason", "mended", "--by", "ann")
    done = run(*words, wanted, "--all-apps", "--yes")

    assert dry == {"matched": int(answer[0]), "is_least": False, "changed": 0}
    assert (single.exit_code, state() != before) == (0, True)
    left = int(answer[0]) - (words[0] == "delete")
    assert f"{left} task(s) {answer[10:]}" in done.stdout
    entry = json.loads(run("audit", "--json", "--limit", "2").stdout)[1]
    assert (entry["action"], entry["done_by"], entry["reason"]) == (words[0], "ann", "mended")


def test_prune_counts_asks_and_deletes(run: Run, db: Database) -> None:
    db.execute(
        "update horsies_tasks set completed_at = now() - interval '3 days' where id <= %s"
        " and status = 'COMPLETED'",
        task_id(9),
    )

    dry = run("prune", "--older-than", "2d", "--dry-run")
    refused = run("prune", "--older-than", "2d", answer="n\n")
    done = run("prune", "--older-than", "2d", "--status", "completed", "--yes")

    assert dry.stdout == "9 task(s) ended more than 2d ago\n"
    assert refused.exit_code == 1
    assert done.stdout.endswith("9 task(s) deleted\n")
    assert (
        db.value("select count(*) from horsies_task_attempts where task_id <= %s", task_id(9)) == 0
    )


def test_tail_prints_what_ended_oldest_first(run: Run) -> None:
    lines = run(
        "tail", "ended-since:2029-01-01", "status:failed", "--count", "2"
    ).stdout.splitlines()

    assert [task_id(10) in lines[0], task_id(20) in lines[1], len(lines)] == [True, True, 2]
    assert "CARD_DECLINED" in lines[0]


def test_completion_is_installed_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")

    first, second = run("completion"), run("completion")

    assert (tmp_path / ".bashrc").read_text().count("_HORSIES_COMPLETE=bash_source") == 1
    assert "added to" in first.stdout
    assert "has it already" in second.stdout


def test_completion_completes_commands(tmp_path: Path) -> None:
    done = run_horsies(
        tmp_path, _HORSIES_COMPLETE="bash_complete", COMP_WORDS="horsies wo", COMP_CWORD="1"
    )

    assert done.stdout.split() == ["plain,worker", "plain,workers", "plain,workflow"]


def test_without_app_or_database_the_cure_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_horsies(tmp_path, "status")

    assert result.returncode == 1
    assert "no app module given" in result.stderr


def test_queues_are_steered_and_it_is_recorded(run: Run) -> None:
    words = ("mail", "--reason", "provider down", "--by", "ann")

    paused, again = run("pause", *words), run("pause", "mail")
    queues = run("queues")
    limited, refused = run("limit", "mail", "3"), run("limit", "mail", "many")
    resumed, nobody = run("resume", "mail"), run("drain", "host-b:1")
    audit = json.loads(run("audit", "--json").stdout)

    assert (paused.stdout, paused.exit_code) == ("mail is paused\n", 0)
    assert "no live worker serves a queue mail" in paused.stderr
    assert (again.stdout, again.exit_code) == ("mail was paused already\n", 1)
    assert "mail paused" in queues.stdout
    assert (limited.stdout, refused.exit_code) == ("mail runs at most 3 at once\n", 2)
    assert resumed.stdout == "mail goes on\n"
    assert "names no living worker" in nobody.output
    assert [entry["action"] for entry in audit] == ["resume", "limit", "pause"]
    assert (audit[-1]["done_by"], audit[-1]["reason"]) == ("ann", "provider down")


def test_doctor_tells_by_its_exit_code(run: Run, db: Database) -> None:
    well = run("doctor")
    db.execute("drop trigger horsies_task_delete_trigger on horsies_tasks")
    unwell, as_json = run("doctor"), run("doctor", "--json")

    assert (well.exit_code, unwell.exit_code, as_json.exit_code) == (0, 1, 1)
    assert "✘ The trigger horsies_task_delete_trigger is missing." in unwell.stdout
    assert "→ create trigger horsies_task_delete_trigger" in unwell.stdout
    assert "trigger" in [finding["check"] for finding in json.loads(as_json.stdout)]


def test_health_is_an_exit_code(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    well, few = run("health"), run("health", "--workers", "2", "--json")
    monkeypatch.setenv("HORSIES_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    away = run("health")

    assert (well.exit_code, few.exit_code, away.exit_code) == (0, 1, 1)
    assert well.stdout == "well: the database answers, 1 worker(s) alive, 1 needed\n"
    assert json.loads(few.stdout)["workers_alive"] == 1
    assert "Error" in away.output
