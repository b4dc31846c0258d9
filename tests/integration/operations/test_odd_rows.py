"""One odd row blinds no view: whatever the schema admits, the others are still shown.

Every column of every table is given values that nobody expects, in copies of sound rows; then
everything that people look at must answer, and show the sound rows.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult
from horsies.cli.main import COMMANDS as CLI_COMMANDS
from horsies.cli.main import horsies
from horsies.config.schedules import IntervalSchedule, ScheduleConfig, TaskSchedule
from horsies.core.models.task_pg import Base
from horsies.result import Err
from horsies.web import Role, Viewer
from support import cluster
from support.database import Database, connect
from support.odd_rows import (
    SOUND,
    VALUES,
    Column,
    OddRow,
    columns_of,
    delete_rows,
    insert_copies,
    insert_copy,
    our_tables,
    plant,
)
from support.web import browsing

MODULE = "shop_with_odd_rows"
LOOKS = (
    "tasks", "count", "queues", "task_stats", "workers", "load_history", "throughput",
    "queue_history", "totals", "worker_totals", "snapshot_ages", "status", "doctor", "workflows",
    "failures", "audit",
)  # fmt: skip
# Each with what it must show: the sound row.
COMMANDS = {
    "status": "default",
    "tasks --limit 1000": f"{SOUND}-pending",
    "tasks --limit 1000 status:running": f"{SOUND}-running",
    "tasks --limit 1000 status:ended": f"{SOUND}-failed",
    "tasks --stats 1h": "add",
    "tasks --count": "",
    f"task {SOUND}-failed": "BROKEN",
    f"why {SOUND}-pending": "",
    f"why {SOUND}/{SOUND}-6": SOUND,
    "queues": "default",
    "workers": SOUND,
    "top --once": SOUND,
    "tail ended-since:1h --count 2": "add",
    "audit --limit 1000": SOUND,
    "doctor": "",
    "metrics": "default",
    "health": "",
    "workflow list --limit 1000": SOUND,
    f"workflow show {SOUND}": SOUND,
    f"workflow show {SOUND} --deep --all": SOUND,
    f"workflow show {SOUND} --mermaid": SOUND,
    "schedule list": SOUND,
    f"schedule show {SOUND}": SOUND,
    f"schedule history {SOUND} --limit 1000": SOUND,
}
# Those that steer repeat what they are given; the rest is about this machine and the code.
SHOW_NOTHING_STORED = {
    "worker", "scheduler", "check", "migrate", "prune", "cancel", "requeue", "reschedule",
    "reprioritise", "delete", "pause", "resume", "limit", "drain", "web", "ping", "demo", "init",
    "completion", "get-docs", "pg",
}  # fmt: skip
PAGES = {
    "/": "",
    "/?span=30d": "",
    "/tasks": "",
    "/tasks?q=id:sound": f"{SOUND}-pending",
    f"/tasks/{SOUND}-failed": "BROKEN",
    "/queues": "default",
    "/workers": SOUND,
    f"/workers/{SOUND}": SOUND,
    "/workflows": SOUND,
    f"/workflows/{SOUND}": SOUND,
    "/schedules": SOUND,
    f"/schedules/{SOUND}": SOUND,
    "/failures": "add",
    "/maintenance": SOUND,
    f"/task?task_id={SOUND}-failed": "",
}


TABLES = sorted(Base.metadata.tables)
VIEWER = Viewer("ann", Role.OPERATOR)


class Scene(NamedTuple):
    app: Horsies
    db: Database


@pytest.fixture(scope="module")
def scene(server: cluster.Server, migrated_template: str) -> Iterator[Scene]:
    """An app on a database with a sound row of everything, found by commands as a module."""
    with server.temporary_database(template=migrated_template) as url:
        app, db = _make_app(url), connect(url)
        plant(db)
        sys.modules[MODULE] = module = ModuleType(MODULE)
        module.app = app  # type: ignore[attr-defined]  # a module made by hand
        yield Scene(app, db)
        del sys.modules[MODULE]
        db.connection.close()
        app.close()


def _make_app(url: str) -> Horsies:
    names = [SOUND, *(f"odd-{number:04}" for number in range(150))]
    hourly = IntervalSchedule(hours=1)
    schedules = [TaskSchedule(name=name, task_name="add", pattern=hourly) for name in names]
    config = AppConfig(
        broker=PostgresConfig(database_url=url, pool_size=5),
        schedule=ScheduleConfig(schedules=schedules),
    )
    app = Horsies(config)

    @app.task("add")
    async def add(a: int, b: int = 0) -> TaskResult[int, TaskError]:
        return TaskResult(ok=a + b)

    return app


@pytest.mark.parametrize("table", TABLES)
async def test_one_odd_row_blinds_no_view(scene: Scene, table: str) -> None:
    columns = columns_of(scene.db, table)
    instants = [column for column in columns if column.kind == "timestamptz"]
    others = [column for column in columns if column.kind != "timestamptz"]

    found = [await _look_beside_odd_rows(scene, table, part) for part in (instants, others)]

    assert sum(count for count, _ in found) > 0
    blind = [problem for _, problems in found for problem in problems]
    assert not blind, "\n".join(blind)


async def _look_beside_odd_rows(
    scene: Scene, table: str, columns: list[Column]
) -> tuple[int, list[str]]:
    """How many odd rows the schema took, and what did not answer or not show the sound ones."""
    odd = list(insert_copies(scene.db, table, columns))
    ids = _ids_to_look_at(table, odd)
    problems = [*_looks(scene.app, ids), *_commands(ids), *await _pages(scene.app, ids)]
    delete_rows(scene.db, table, [one.place for one in odd])
    return len(odd), problems


def values_of(kind: str) -> st.SearchStrategy[object]:
    """What a column of this type may hold: the values that are known to be odd, and any other."""
    others: dict[str, st.SearchStrategy[object]] = {
        "timestamptz": st.datetimes(timezones=st.just(UTC)),
        "varchar": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        "int4": st.integers(-(2**31), 2**31 - 1),
        "int8": st.integers(-(2**63), 2**63 - 1),
        "float8": st.floats(),
        "bool": st.booleans(),
        "jsonb": st.recursive(
            st.none() | st.booleans() | st.integers() | st.just("a"),
            lambda part: st.lists(part) | st.dictionaries(st.just("a"), part),
        ).map(json.dumps),
    }
    others["text"] = others["varchar"] | others["jsonb"]
    return st.sampled_from([*VALUES[kind], None]) | others.get(kind, st.just("{1}"))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_row_that_the_schema_admits_costs_no_view(scene: Scene, data: st.DataObject) -> None:
    table = data.draw(st.sampled_from(TABLES))
    columns = columns_of(scene.db, table)
    chosen = data.draw(st.lists(st.sampled_from(columns), min_size=1, max_size=4, unique=True))
    changes = {column.name: data.draw(values_of(column.kind)) for column in chosen}
    places = insert_copy(scene.db, table, changes)
    assume(places)

    try:
        problems = [*_looks(scene.app, SOUND_IDS)]
    finally:
        delete_rows(scene.db, table, places)

    assert not problems, f"{table} {changes}"


async def test_stored_text_never_acts_on_a_terminal(scene: Scene) -> None:
    acts = "\x1b]0;title\x07\x1b[2J\r\x9b1A\u202e\u2028a"
    raw = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069]")
    places: dict[str, list[str]] = {}
    odd_ids: dict[str, str] = {}
    for table in our_tables(scene.db):
        texts = [one for one in columns_of(scene.db, table) if one.kind in ("text", "varchar")]
        odd = list(insert_copies(scene.db, table, texts, {"text": (acts,), "varchar": (acts,)}))
        places[table] = [one.place for one in odd]
        if table == "horsies_tasks":
            odd_ids = {str(one.row["id"]): one.column for one in odd if one.column != "id"}

    lines = [*COMMANDS, *(f"task {one}" for one in odd_ids), *(f"why {one}" for one in odd_ids)]
    printed = {line: _invoke(line).output for line in lines}
    for table, taken in places.items():
        delete_rows(scene.db, table, taken)

    assert {line: found for line, text in printed.items() if (found := raw.findall(text))} == {}
    assert any("\\u001b]0;title\\u0007" in text for text in printed.values())


def test_every_command_is_looked_through_or_shows_nothing_that_is_stored() -> None:
    looked_through = {line.split()[0] for line in COMMANDS}

    assert {"dashboard", "tui", *SHOW_NOTHING_STORED, *looked_through} == set(CLI_COMMANDS)


class Ids(NamedTuple):
    """What single rows are looked at by, each with what is odd in it."""

    tasks: dict[str, str]
    workers: dict[str, str]
    workflows: dict[str, str]
    schedules: dict[str, str]


SOUND_IDS = Ids({f"{SOUND}-failed": ""}, {SOUND: ""}, {SOUND: ""}, {SOUND: ""})


def _ids_to_look_at(table: str, odd: list[OddRow]) -> Ids:
    """Of each odd value one row, whose own pages answer too; else those of the sound row."""

    def ids(of_table: str, key: str, sound: str) -> dict[str, str]:
        if table != of_table:
            return {sound: "sound"}
        found = {(one.column, one.row[one.column]): str(one.row[key]) for one in odd}
        return {
            one: f"{column} {value!s:.40}"
            for (column, value), one in found.items()
            if column not in (key, "owner", "snapshot_at")
        }

    if not odd:
        return SOUND_IDS
    is_progress = table == "horsies_task_progress"
    return Ids(
        ids(table, "task_id", "") if is_progress else ids("horsies_tasks", "id", f"{SOUND}-failed"),
        ids("horsies_worker_states", "worker_id", SOUND),
        ids("horsies_workflows", "id", SOUND),
        ids("horsies_schedule_state", "schedule_name", SOUND),
    )


def _looks(app: Horsies, ids: Ids) -> Iterator[str]:
    """What `app.operations`, schedules and handles answer."""
    see = app.operations
    for name in LOOKS:
        yield from _problem(name, getattr(see, name))
    for one, odd in ids.tasks.items():
        yield from _problem(f"task of {odd}", lambda one=one: see.task(one))
        yield from _problem(f"why of {odd}", lambda one=one: see.why(one))
        yield from _problem(f"info of {odd}", lambda one=one: _info(app, one))
        yield from _problem(f"get of {odd}", lambda one=one: _shown(app.handle(one).get(0)))
    for one, odd in ids.workers.items():
        yield from _problem(f"worker of {odd}", lambda one=one: see.worker_history(one))
    for one, odd in ids.workflows.items():
        yield from _problem(f"flow of {odd}", lambda one=one: see.workflow(one, deep=True))
        yield from _problem(f"failed in of {odd}", lambda one=one: see.workflow_failures(one))
        handle = app.workflow_handle(one)
        yield from _problem(f"flow get of {odd}", lambda h=handle: _shown(h.get(0)))
        yield from _problem(f"flow status of {odd}", handle.status)
        yield from _problem(f"flow tasks of {odd}", handle.tasks)
        yield from _problem(f"flow results of {odd}", handle.results)
    yield from _problem("schedules", app.schedules.list)
    for one, odd in ids.schedules.items():
        yield from _problem(f"next of {odd}", lambda one=one: app.schedules.next_runs(one))
        yield from _problem(f"history of {odd}", lambda one=one: app.schedules.history(one))


def _info(app: Horsies, task_id: str) -> Any:
    return app.handle(task_id).info(
        include_result=True, include_failed_reason=True, include_attempts=True
    )


def _shown(result: object) -> str:
    return repr(result)


def _problem(name: str, look: Callable[[], Any]) -> Iterator[str]:
    try:
        answer = look()
    except Exception as error:
        yield f"{name}: {type(error).__name__}: {error!s:.200}"
        return
    if isinstance(answer, Err) and not answer.err_value.code.endswith("_NOT_FOUND"):
        yield f"{name}: {answer.err_value!s:.200}"


def _commands(ids: Ids) -> Iterator[str]:
    """What the command line prints, for people and as JSON."""
    lines = [(line, expected, "") for line, expected in COMMANDS.items()]
    lines += [
        (f"{line} {one}", "", odd) for one, odd in ids.tasks.items() for line in ("task", "why")
    ]
    lines += [(f"workflow show {one}", "", odd) for one, odd in ids.workflows.items()]
    lines += [(f"schedule show {one}", "", odd) for one, odd in ids.schedules.items()]
    for line, expected, odd in lines:
        yield from (f"{problem} {odd}" for problem in _run(line, expected))


def _invoke(line: str) -> Result:
    words = [*line.split(), "-m", f"{MODULE}:app"]
    return CliRunner().invoke(horsies, words, env={"COLUMNS": "250"})


def _run(line: str, expected: str) -> Iterator[str]:
    result = _invoke(line)
    says_no = line.startswith(("doctor", "health"))  # 1 is an answer of theirs
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        yield f"{line}: {result.exception!r:.200}"
    elif result.exit_code > says_no or expected not in result.output:
        yield f"{line}: exit {result.exit_code}: {result.output:.200}"


async def _pages(app: Horsies, ids: Ids) -> list[str]:
    """What the dashboard shows."""
    paths = {path: (expected, "") for path, expected in PAGES.items()}
    paths |= {f"/tasks/{one}": ("", odd) for one, odd in ids.tasks.items()}
    paths |= {f"/workers/{one}": ("", odd) for one, odd in ids.workers.items()}
    paths |= {f"/workflows/{one}": ("", odd) for one, odd in ids.workflows.items()}
    paths |= {f"/schedules/{one}": ("", odd) for one, odd in ids.schedules.items()}
    problems: list[str] = []
    async with browsing(app, authenticate=lambda _: VIEWER) as client:
        for path, (expected, odd) in paths.items():
            try:
                answer = await client.get(path)
            except Exception as error:
                problems.append(f"{path} {odd}: {type(error).__name__}: {error!s:.200}")
                continue
            if answer.status_code != 200 or expected not in answer.text:
                problems.append(f"{path} {odd}: {answer.status_code}")
    return problems
