"""The previous release's workers and producers on the present schema, in both orders of upgrade."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from horsies.database.migrate import FUNCTIONS_VERSION, OLDEST_SERVED
from horsies.database.sql_files import functions_digest
from support.command import run_horsies
from support.database import Database, connect
from support.eventually import eventually
from support.faults import children_of, scene
from support.programs import worker
from support.releases import PRESENT, Release, make_release, python_of, unpack_previous

pytestmark = pytest.mark.slow

# Both releases run these two programs: they use only what both have.
SHOP = """
import os, time
from pathlib import Path

import horsies
from horsies import Horsies, RetryPolicy, TaskError, TaskResult

WHO = os.environ["PYTHONPATH"]
assert Path(horsies.__file__).is_relative_to(WHO), f"not this release: {horsies.__file__}"
assert horsies.__version__ == os.environ["RELEASE"], horsies.__version__
app = Horsies()

@app.task("in_child")
def in_child(number: int) -> TaskResult[list[int | str], TaskError]:
    return TaskResult(ok=[2 * number, WHO])

@app.task("in_loop")
async def in_loop(number: int) -> TaskResult[list[int | str], TaskError]:
    return TaskResult(ok=[3 * number, WHO])

@app.task("in_thread", execution="blocking")
def in_thread(number: int) -> TaskResult[list[int | str], TaskError]:
    return TaskResult(ok=[4 * number, WHO])

@app.task("broken", retry_policy=RetryPolicy.fixed([1], auto_retry_for=["BROKEN"], jitter=False))
def broken() -> TaskResult[int, TaskError]:
    return TaskResult(err=TaskError(error_code="BROKEN", message="again", data={"by": WHO}))

@app.task("hold")
def hold(gate: str) -> TaskResult[str, TaskError]:
    Path(f"{gate}.inside").touch()
    while not Path(gate).exists():
        time.sleep(0.02)
    return TaskResult(ok=WHO)
"""
PRODUCE = """
import json, os, sys
from shop import app, broken, in_child, in_loop, in_thread

def shown(result):
    error = result.err
    return result.ok_value if error is None else [error.error_code, error.data]

for number, line in enumerate(sys.stdin):
    read = {task_id: shown(app.get_broker().get_result(task_id)) for task_id in line.split()}
    withdrawn = in_child.schedule(600, 0).unwrap()
    handles = [
        broken.with_options(unique_key=f"{os.getpid()} {number}").send().unwrap(),
        in_child.send(1).unwrap(),
        in_thread.send(1).unwrap(),
        *in_loop.send_many([(1,), (2,)]).unwrap(),
    ]
    sent = {handle.task_id: shown(handle.get(40_000)) for handle in handles}
    attempts = handles[0].info(include_attempts=True).unwrap().attempts
    told = [read, sent, [attempt.outcome for attempt in attempts], withdrawn.cancel().unwrap()]
    print(json.dumps(told), flush=True)
app.get_broker().close()
"""
PROGRAMS = {"shop.py": SHOP, "produce.py": PRODUCE}
PRESENT_FUNCTIONS = f"{FUNCTIONS_VERSION}:{OLDEST_SERVED}:{functions_digest()}"
# Functions that were replaced and put back have another instant.
RECORD = """
select unnest(array[v.name, v.applied_at::text]) as line
from horsies_schema_version v where v.version = 0
"""
FUNCTIONS = """
select pg_get_functiondef(p.oid) as line from pg_proc p
where starts_with(p.proname, 'horsies_') order by 1
"""
# Arguments travel by name, so their names count as much as their types.
SIGNATURES = """
select p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ') returns '
    || pg_get_function_result(p.oid) as line
from pg_proc p where starts_with(p.proname, 'horsies_')
"""
COLUMNS = """
select c.table_name || '.' || c.column_name as line from information_schema.columns c
where starts_with(c.table_name, 'horsies_')
"""
CALLS = re.compile(r'\bcall\(\s*"(\w+)"|\bhorsies_(\w+)\(')
RUNNING_OF = "select id from horsies_tasks where status = 'RUNNING' and claimed_by_worker_id = %s"
CRASHED = "select task_id from horsies_task_attempts where error_code = 'WORKER_CRASHED'"

Results = dict[str, Any]  # by task id


@pytest.fixture(scope="session")
def previous_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_previous(tmp_path_factory.mktemp("previous"))


def both(previous_package: Path, directory: Path, url: str) -> tuple[Release, Release]:
    """The previous and the present release, each with a copy of the project."""
    return (
        make_release(previous_package, directory / "previous_project", PROGRAMS, url),
        make_release(PRESENT, directory / "present_project", PROGRAMS, url),
    )


def lines(url: str, statement: str) -> list[str]:
    with closing(connect(url).connection) as connection:
        return [row["line"] for row in Database(connection).execute(statement)]


def stored_functions(url: str) -> list[str]:
    """Which functions are recorded, and since when; then the functions themselves."""
    return lines(url, RECORD) + lines(url, FUNCTIONS)


def called_by(package: Path) -> set[str]:
    """The functions that the Python of a release and its queries call."""
    files = [*package.rglob("statements.py"), *package.rglob("sql/queries/*.sql")]
    calls = [call for file in files for call in CALLS.findall(file.read_text())]
    return {f"horsies_{by_python or by_query}" for by_python, by_query in calls}


def migrate(release: Release, *options: str) -> str:
    done = run_horsies(release.project, "migrate", *options, **release.environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Producer:
    """A process that reads, sends and waits each time it is asked to."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._questions, self._answers = process.stdin, process.stdout

    def ask(self, reading: Results) -> None:
        self._questions.write(" ".join(reading) + "\n")
        self._questions.flush()

    def answer(self) -> list[Any]:
        line = self._answers.readline()
        assert line, "the producer has ended"
        told: list[Any] = json.loads(line)
        return told


@contextmanager
def producer(release: Release) -> Iterator[Producer]:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "produce.py"],
        cwd=release.project,
        env=os.environ | release.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Producer(process)
        process.communicate(timeout=20)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def exchange(*producers: Producer, worked_by: Release, reading: Results | None = None) -> Results:
    """Each producer reads these results, then sends tasks of every kind and gets theirs."""
    reading, by = reading or {}, str(worked_by.package)
    expected = [["BROKEN", {"by": by}], [2, by], [4, by], [3, by], [6, by]]
    results: Results = {}
    for each in producers:
        each.ask(reading)
    for each in producers:
        read, sent, attempts, is_withdrawn = each.answer()
        assert read == reading
        assert list(sent.values()) == expected
        assert (attempts, is_withdrawn) == (["FAILED", "FAILED"], True)
        results |= sent
    return results


def test_previous_release_finds_its_functions_and_columns(
    empty_database_url: str, database_url: str, previous_package: Path, tmp_path: Path
) -> None:
    previous, _ = both(previous_package, tmp_path, empty_database_url)
    called = called_by(previous_package)
    with closing(connect(empty_database_url).connection) as connection:
        connection.execute(migrate(previous, "--sql").encode())

    signatures = lines(empty_database_url, SIGNATURES)
    needed = {line for line in signatures if line.partition("(")[0] in called}

    assert {line.partition("(")[0] for line in needed} == called
    assert needed - set(lines(database_url, SIGNATURES)) == set()
    assert set(lines(empty_database_url, COLUMNS)) - set(lines(database_url, COLUMNS)) == set()


def test_previous_release_works_on_while_the_present_one_migrates(
    empty_database_url: str, previous_package: Path, tmp_path: Path
) -> None:
    previous, present = both(previous_package, tmp_path, empty_database_url)
    gate = tmp_path / "gate"

    with producer(previous) as old, producer(present) as new:
        with worker(previous.project, "shop:app", **previous.environment):
            exchange(old, worked_by=previous)
            with closing(connect(empty_database_url).connection) as connection:
                db = Database(connection)
                arguments = json.dumps([str(gate)])
                held = db.insert(task_name="hold", args=arguments, enqueued_at=datetime.now(UTC))
                eventually(Path(f"{gate}.inside").exists, within=20)
                # Replaces the functions also while both releases have the same.
                db.execute("update horsies_schema_version set name = '1:1:older' where version = 0")
                assert "applied: functions" in migrate(present, "shop:app")
                migrated = stored_functions(empty_database_url)
                gate.touch()
                eventually(lambda: db.status(held) == "COMPLETED", within=60)
            sent = exchange(old, new, worked_by=previous)
        with worker(present.project, "shop:app", **present.environment):
            exchange(old, new, worked_by=present, reading=sent)

    assert migrated[0] == PRESENT_FUNCTIONS
    assert stored_functions(empty_database_url) == migrated


def test_previous_release_that_starts_later_changes_no_function(
    database_url: str, previous_package: Path, tmp_path: Path
) -> None:
    previous, present = both(previous_package, tmp_path, database_url)
    made = stored_functions(database_url)

    with producer(previous) as old, producer(present) as new:
        with worker(previous.project, "shop:app", **previous.environment):
            sent = exchange(old, new, worked_by=previous)
        with worker(present.project, "shop:app", **present.environment):
            exchange(old, new, worked_by=present, reading=sent)

    assert made[0] == PRESENT_FUNCTIONS
    assert stored_functions(database_url) == made


@pytest.mark.parametrize("is_victim_previous", [True, False], ids=["previous", "present"])
def test_killed_worker_is_recovered_by_one_of_the_other_release(
    database_url: str, previous_package: Path, is_victim_previous: bool
) -> None:
    packages = [previous_package, PRESENT] if is_victim_previous else [PRESENT, previous_package]
    made = stored_functions(database_url)

    with scene(database_url) as play:
        victim, survivor = (
            play.start_worker("--processes", "2", python=python_of(package)) for package in packages
        )
        victim_id = play.wait_ready(victim)
        play.wait_ready(survivor)
        eventually(lambda: len(children_of(victim)) == 2)
        children_of(victim)[0].suspend()  # gets a task that does not begin
        play.send("child", range(4), -1)  # two for each worker
        play.send("coroutine", range(4, 10), -1)
        eventually(lambda: play.begun().total() == 9 and play.count("RUNNING") == 10, within=20)
        taken = {task_id for (task_id,) in play.rows(RUNNING_OF, victim_id)}
        lost = {task_id for task_id in taken if play.numbers[task_id] in play.begun()}
        play.send("child", range(10, 14), -1)

        play.kill(victim)
        eventually(lambda: {task_id for (task_id,) in play.rows(CRASHED)} == lost, within=30)
        play.open_gate()
        play.wait_until_all_ended(within=30)
        survivor.terminate()

        assert survivor.wait(20) == 0
        assert 1 <= len(lost) == len(taken) - 1
        assert play.count("COMPLETED") == 14
        assert play.scalar("select count(*) from horsies_task_attempts") == 14 + len(lost)
        play.assert_invariants()
    assert made[0] == PRESENT_FUNCTIONS
    assert stored_functions(database_url) == made
