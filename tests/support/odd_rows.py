"""Odd rows: copies of sound ones with values that the schema admits and nobody expects.

The columns come from the database, so that a new one is in it by itself.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from horsies.database.verdict import Verdict, judge_error
from support.database import FAILURE, OK, Database

SOUND = "sound"
_DEEP = 1_500
_BASES = 5  # of those that are stored first
_INSTANTS = (
    "infinity", "-infinity", "4000-01-01 00:00:00 BC", "0001-01-01 00:00:00+00", "200000-01-01",
    "9999-12-31 23:59:59.999999+00",
)  # fmt: skip
_TEXTS = (
    "", "NULL", "{", "7", "null", '"a"', "[]", "{}", "[[1]]", '{"a": {"b": [null]}}', "NaN",
    '{"__task_result__": true, "ok": NaN, "err": null}', '"\\u0000"', '"\\ud800"', "9" * 4_400,
    "[" * _DEEP + "]" * _DEEP, "\x1b]0;title\x07\u202e", "../..", "[bold]a[/nothing]",
    '{"__task_result__": true, "ok": null, "err": 7}',
)  # fmt: skip
_INTEGERS = (0, -1, -(2**31), 2**31 - 1)
_ARRAYS = ("{}", "{NULL}", "{{1,2},{3,4}}", "[5:6]={1,2}", "{2147483647}", "{-1}")
_JSON = (
    "null", "7", "[]", "{}", '"a"', "[[1]]", '{"default": "a", "a": null, "b": [], "slots": {}}',
    '{"async": 7}', '{"async": {"slots": "a"}}', '{"async": {"slots": 1}}', "1e400",
    "[" * _DEEP + "]" * _DEEP,
    '{"default": 100000000000000000000, "a": {"slots": 1e400}}',
)  # fmt: skip
Values = Mapping[str, tuple[object, ...]]
VALUES: Values = {
    "timestamptz": _INSTANTS,
    "varchar": _TEXTS,
    "text": _TEXTS,
    "int4": _INTEGERS,
    "int8": (*_INTEGERS, -(2**63), 2**63 - 1),
    "float8": ("NaN", "Infinity", "-Infinity", 1e308, -1, 0),
    "bool": (True, False),
    "jsonb": _JSON,
    "_text": _ARRAYS,
    "_varchar": _ARRAYS,
    "_int4": _ARRAYS,
    "_int8": _ARRAYS,
}
# What a row needs where it has no default, and what tells copies apart in keys.
_PLAIN: dict[str, object] = {
    "timestamptz": "now", "varchar": "default", "text": "{}", "int4": 1, "int8": 1, "float8": 1,
    "bool": True, "jsonb": "{}",
}  # fmt: skip
# Keys that name another row; the scene has these for copies to use.
_OTHERS = {
    ("horsies_task_progress", "task_id"): "spare-{:04}",
    ("horsies_schedules", "name"): "added-{:04}",
}
# Copies of these belong to the same task, workflow or schedule as the sound row.
_SHARED = {
    ("horsies_task_attempts", "task_id"), ("horsies_task_logs", "task_id"),
    ("horsies_schedule_runs", "schedule_name"), ("horsies_queue_history", "step_s"),
    ("horsies_queue_history", "starts_at"), ("horsies_workflow_tasks", "workflow_id"),
}  # fmt: skip

# Not unique, but a view shows only the last row of each.
_OWN = {("horsies_worker_states", "worker_id")}


class Column(NamedTuple):
    name: str
    kind: str
    is_needed: bool
    is_key: bool


def our_tables(db: Database) -> list[str]:
    rows = db.execute(
        "select table_name as name from information_schema.tables where table_schema = "
        "current_schema() and table_type = 'BASE TABLE' and table_name ~ '^horsies_' order by 1"
    )
    return [row["name"] for row in rows]


def columns_of(db: Database, table: str) -> list[Column]:
    """All columns; a key is of a unique index that holds for all rows."""
    rows = db.execute(
        "select c.column_name, c.udt_name, c.is_nullable = 'NO' and c.column_default is null, "
        "exists (select from pg_index i join pg_attribute a on a.attrelid = i.indrelid "
        "and a.attnum = any (i.indkey) where i.indrelid = c.table_name::regclass "
        "and i.indisunique and i.indpred is null and a.attname = c.column_name) as is_key "
        "from information_schema.columns c where c.table_schema = current_schema() "
        "and c.table_name = %s order by c.ordinal_position",
        table,
    )
    return [Column(*row.values()) for row in rows]


def plant(db: Database) -> None:
    """A sound row of every table, of tasks and nodes one of each kind."""
    for status in ("PENDING", "CLAIMED", "RUNNING", "COMPLETED", "FAILED"):
        _insert_task(db, f"{SOUND}-{status.lower()}", status)
    db.insert("horsies_schedule_state", schedule_name=SOUND)
    for number in range(50):
        _insert_task(db, f"spare-{number:04}", "RUNNING")
        db.execute(
            "insert into horsies_schedule_state (schedule_name, next_run_at) "
            "values (%s, now() + interval '1 h')",
            f"added-{number:04}",
        )
    failed = f"{SOUND}-failed"
    db.execute(
        "insert into horsies_task_attempts (task_id, attempt, outcome, started_at, finished_at, "
        "error_code, traceback) values (%s, 1, 'FAILED', now(), now(), 'BROKEN', 'File x')",
        failed,
    )
    db.insert("horsies_task_logs", task_id=failed, attempt=1, log=SOUND)
    db.insert("horsies_task_progress", task_id=f"{SOUND}-running", attempt=1, done=1, note=SOUND)
    db.execute(
        "insert into horsies_worker_states (worker_id, hostname, pid, processes, queues, "
        "memory_usage_mb, cpu_percent, max_claim_batch, max_claim_per_worker, worker_started_at, "
        "queue_max_concurrency, slots) select %s, %s, 1, 2, '{default}', 1, 1, 0, 0, now(), "
        """'{"default": 3}', '{"async": {"slots": 2, "busy": 1}}' from generate_series(1, 2)""",
        SOUND,
        SOUND,
    )
    _plant_workflows(db)
    definition = {
        "name": "added-0049",
        "task_name": "add",
        "pattern": {"type": "interval", "hours": 1},
    }
    db.insert("horsies_schedules", name="added-0049", definition=json.dumps(definition))
    db.execute(
        "insert into horsies_schedule_runs (schedule_name, slot_at, outcome, reason) "
        "values (%s, now(), 'failed', %s)",
        SOUND,
        SOUND,
    )
    db.insert("horsies_audit", done_by=SOUND, action="pause", target="queue a", details="{}")
    db.insert("horsies_queue_controls", queue_name=SOUND, pause_reason=SOUND)
    db.execute(
        "insert into horsies_queue_history (step_s, starts_at, queue_name, start_latencies, "
        "due_count, oldest_due_s) values (60, date_trunc('minute', now() - interval '5 min'), "
        "%s, '{1,2}', 1, 2.0)",
        SOUND,
    )
    for table in our_tables(db):
        if not db.execute(f"select 1 from {table} limit 1"):
            needed = [one for one in columns_of(db, table) if one.is_needed]
            values = {one.name: _PLAIN.get(one.kind, "{}") for one in needed}
            db.insert(table, **values)


def _insert_task(db: Database, task_id: str, status: str) -> None:
    is_taken, is_ended = status != "PENDING", status in ("COMPLETED", "FAILED")
    db.execute(
        "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, status, args, kwargs, "
        "sent_at, claimed_at, started_at, claimed_by_worker_id, completed_at, failed_at, result, "
        "error_code, tags) select %s, 'add', 'default', 'by hand', %s, '[1]', '{}', now(), "
        "case when %s then now() end, case when %s then now() end, case when %s then %s end, "
        "case when %s then now() end, case when %s then now() end, %s, %s, '{vip}'",
        task_id, status, is_taken, is_taken, is_taken, SOUND,
        status == "COMPLETED", status == "FAILED",
        {"COMPLETED": OK, "FAILED": FAILURE}.get(status), "BROKEN" if status == "FAILED" else None,
    )  # fmt: skip
    assert is_ended or status in ("PENDING", "CLAIMED", "RUNNING")


def _plant_workflows(db: Database) -> None:
    for status in ("COMPLETED", "FAILED", "PAUSED", "RUNNING"):
        db.execute(
            "insert into horsies_workflows (id, name, status, started_at, completed_at, result, "
            "error) select %s, %s, %s, now(), now(), %s, %s",
            SOUND if status == "RUNNING" else f"{SOUND}-{status.lower()}",
            SOUND, status, OK if status == "COMPLETED" else None,
            '{"__task_error__": true, "error_code": "A"}' if status == "FAILED" else None,
        )  # fmt: skip
    nodes: tuple[dict[str, Any], ...] = (
        {"kind": "task", "status": "COMPLETED", "result": OK},
        {"kind": "task", "status": "FAILED", "result": FAILURE, "task_id": f"{SOUND}-failed"},
        {"kind": "sleep", "status": "RUNNING", "wait_until": "now"},
        {"kind": "event", "status": "RUNNING", "event_name": "e", "event_key": "k"},
        {"kind": "sub_workflow", "status": "RUNNING", "sub_workflow_id": f"{SOUND}-failed"},
        {"kind": "each", "status": "RUNNING"},
        {"kind": "task", "status": "PENDING", "dependencies": [0, 2]},
    )
    for index, node in enumerate(nodes):
        db.insert(
            "horsies_workflow_tasks", id=f"{SOUND}-{index}", workflow_id=SOUND, task_index=index,
            node_id=f"{SOUND}-{index}", task_name="add", started_at="now", **node,
        )  # fmt: skip


class OddRow(NamedTuple):
    """A copy, the column that is odd in it, and where it is."""

    column: str
    place: str
    row: dict[str, str | None]


def insert_copies(
    db: Database, table: str, chosen: list[Column], values: Values = VALUES
) -> Iterator[OddRow]:
    """Copies of sound rows with each value that the schema takes in one of these columns."""
    columns = columns_of(db, table)
    sound = [row["place"] for row in db.execute(f"select ctid::text as place from {table}")]
    wanted = [
        (one.name, value, base)
        for one in chosen
        for turn, value in enumerate((*values[one.kind], None))
        # What an instant means depends on the state of its row: a copy of each.
        for base in (
            sound[:_BASES] if one.kind == "timestamptz" else [sound[turn % min(len(sound), _BASES)]]
        )
    ]
    for number, (name, value, base) in enumerate(wanted):
        keys = _keys(table, columns, number)
        for row in _copy(db, table, columns, base, keys | {name: value}):
            yield OddRow(name, str(row.pop("place")), row)


def insert_copy(db: Database, table: str, changes: dict[str, object]) -> list[str]:
    """A copy of a sound row with these changes; its place, none if the schema does not take it."""
    columns = columns_of(db, table)
    base = db.value(f"select ctid::text from {table} limit 1")
    changes = _keys(table, columns, 1) | changes
    return [str(row["place"]) for row in _copy(db, table, columns, base, changes)]


def delete_rows(db: Database, table: str, places: list[str]) -> None:
    db.execute(f"delete from {table} where ctid = any (%s::tid[])", places)


def _keys(table: str, columns: list[Column], number: int) -> dict[str, object]:
    keys = {
        one.name: _key(table, one, number)
        for one in columns
        if one.is_key or (table, one.name) in _OWN
    }
    return {name: key for name, key in keys.items() if key is not None}


def _key(table: str, column: Column, number: int) -> object:
    place = (table, column.name)
    if place in _SHARED:
        return None
    if column.kind in ("varchar", "text"):
        return _OTHERS.get(place, "odd-{:04}").format(number)
    if column.kind == "timestamptz":
        return f"2030-01-01 00:00:00+00:00:{number % 60:02}"
    return 1_000 + number


def _copy(
    db: Database, table: str, columns: list[Column], base: str, changes: dict[str, object]
) -> list[dict[str, str | None]]:
    chosen = [
        sql.SQL("{}::text::{}").format(sql.Placeholder(), sql.SQL(one.kind))
        if one.name in changes
        else sql.Identifier(one.name)
        for one in columns
    ]
    statement = sql.SQL(
        "insert into {table} ({names}) select {chosen} from {table} where ctid = %s::tid "
        "returning ctid::text as place, {texts}"
    ).format(
        table=sql.Identifier(table),
        texts=sql.SQL(", ").join(
            sql.SQL("{0}::text as {0}").format(sql.Identifier(one.name)) for one in columns
        ),
        names=sql.SQL(", ").join(sql.Identifier(one.name) for one in columns),
        chosen=sql.SQL(", ").join(chosen),
    )
    values = [changes[one.name] for one in columns if one.name in changes]
    try:
        cursor = db.connection.execute(statement, [_text(value) for value in values] + [base])
    except psycopg.DatabaseError as error:
        if judge_error(error) is not Verdict.ROW:
            raise
        return []  # the schema does not take it
    return cursor.fetchall()


def _text(value: object) -> str | None:
    return None if value is None else str(value)
