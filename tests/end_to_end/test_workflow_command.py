"""`horsies workflow` as a process: what it prints, and the exit codes scripts rely on."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult, from_node
from support.apps import good, working
from support.command import run_horsies, write_project

SHOP = """
from horsies import Horsies, TaskError, TaskResult

app = Horsies()


@app.task("load")
async def load(n: int) -> TaskResult[list[int], TaskError]:
    return TaskResult(ok=list(range(n)))


@app.task("check_row")
async def check_row(row: int) -> TaskResult[int, TaskError]:
    if row == 3:
        return TaskResult(err=TaskError(error_code="BAD_ROW", message="row 3 is bad"))
    return TaskResult(ok=row)


@app.task("report")
async def report() -> TaskResult[str, TaskError]:
    return TaskResult(ok="done")
"""


@dataclass
class Shop:
    """A project with an app, and the same tasks in this process."""

    project: Path
    url: str
    app: Horsies

    def run(self, *words: str, **environment: str) -> CompletedProcess[str]:
        return run_horsies(
            self.project, "workflow", *words, HORSIES_DATABASE_URL=self.url, **environment
        )

    def spec(self, count: int, name: str = "import") -> Any:
        load = self.app.tasks["load"].node(node_id="load")(n=count)
        check = self.app.tasks["check_row"].node(node_id="check", each=from_node(load))()
        report = self.app.tasks["report"].node(node_id="report", waits_for=[check])()
        return self.app.workflow(name, [load, check, report], definition_key=name)


@pytest.fixture
def shop(tmp_path: Path, database_url: str) -> Iterator[Shop]:
    app = Horsies(AppConfig(broker=PostgresConfig(database_url=database_url)))

    @app.task("load")
    async def load(n: int) -> TaskResult[list[int], TaskError]:
        return TaskResult(ok=list(range(n)))

    @app.task("check_row")
    async def check_row(row: int) -> TaskResult[int, TaskError]:
        if row == 3:
            return TaskResult(err=TaskError(error_code="BAD_ROW", message="row 3 is bad"))
        return TaskResult(ok=row)

    @app.task("report")
    async def report() -> TaskResult[str, TaskError]:
        return TaskResult(ok="done")

    yield Shop(write_project(tmp_path, {"shop.py": SHOP}), database_url, app)
    app.get_broker().close()


async def ended(shop: Shop, count: int) -> str:
    """The id of a workflow that a worker has run to its end."""
    async with working(shop.app):
        handle = good(await shop.spec(count).start_async())
        await handle.get_async(timeout_ms=10_000)
    return str(handle.workflow_id)


async def test_a_failed_workflow_shows_graph_errors_and_reasons(shop: Shop) -> None:
    workflow_id = await ended(shop, 10)

    done = shop.run("show", "shop:app", workflow_id)

    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines[3:6]] == [["✔", "load"], ["✘", "check"], ["⊘", "report"]]
    assert "10 of 10 done, 1 failed" in done.stdout
    assert "skipped: check failed" in done.stdout
    assert "BAD_ROW: row 3 is bad" in done.stdout
    assert f"horsies workflow retry shop:app {workflow_id}" in done.stdout


async def test_deep_unfolds_a_fan_out_in_one_row(shop: Shop) -> None:
    done = shop.run("show", "shop:app", await ended(shop, 10), "--deep")

    assert "check.0 … check.9" in done.stdout
    assert "check_row × 10" in done.stdout


async def test_few_elements_of_a_fan_out_have_a_row_each(shop: Shop) -> None:
    done = shop.run("show", "shop:app", await ended(shop, 3), "--deep")

    unfolded = [line for line in done.stdout.splitlines() if "┊" in line]
    assert [line.split("┊")[1].split()[1] for line in unfolded] == ["check.0", "check.1", "check.2"]


async def test_a_terminal_without_unicode_gets_ascii(shop: Shop) -> None:
    workflow_id = await ended(shop, 2)

    done = shop.run("show", "shop:app", workflow_id, PYTHONIOENCODING="ascii", PYTHONUTF8="0")

    assert done.returncode == 0, done.stderr
    assert "v load" in done.stdout.replace("v  load", "v load")


async def test_json_and_mermaid_are_for_programs(shop: Shop) -> None:
    workflow_id = await ended(shop, 2)

    listed = json.loads(shop.run("list", "shop:app", "--json").stdout)
    shown = json.loads(shop.run("show", "shop:app", workflow_id, "--json").stdout)
    mermaid = shop.run("show", "shop:app", workflow_id, "--mermaid").stdout

    assert [row["id"] for row in listed["workflows"]] == [workflow_id]
    assert (listed["workflows"][0]["done_count"], listed["workflows"][0]["node_count"]) == (3, 3)
    assert {node["node_id"]: node["status"] for node in shown["nodes"]} == {
        "load": "COMPLETED", "check": "COMPLETED", "report": "COMPLETED",
    }  # fmt: skip
    assert mermaid.startswith("flowchart TD")
    assert "class n0,n1,n2 COMPLETED" in mermaid


def test_pause_resume_and_cancel_answer_by_exit_code(shop: Shop) -> None:
    workflow_id = good(shop.spec(2).start()).workflow_id
    steps = ["resume", "pause", "pause", "resume", "cancel", "cancel"]

    done = [shop.run(step, "shop:app", workflow_id) for step in steps]

    assert [one.returncode for one in done] == [1, 0, 1, 0, 0, 1]
    assert done[1].stdout.startswith(f"paused: import {workflow_id}\nnow PAUSED, 0 of 3 done")
    assert done[2].stderr == "not paused: the workflow is PAUSED\n"
    assert done[4].stdout.splitlines()[1] == "now CANCELLED, 3 of 3 done, 3 skipped"
    assert done[5].stderr == "not cancelled: the workflow is CANCELLED\n"


async def test_retry_runs_what_failed_or_says_why_not(shop: Shop) -> None:
    failed, completed = await ended(shop, 10), await ended(shop, 2)

    done = [
        shop.run("retry", "shop:app", failed),
        shop.run("retry", "shop:app", failed),
        shop.run("retry", "shop:app", completed),
        shop.run("retry", "shop:app", completed, "--from", "nothing"),
        shop.run("retry", "shop:app", completed, "--from", "report"),
    ]

    assert [one.returncode for one in done] == [0, 1, 1, 1, 0]
    assert "not retried: the workflow is RUNNING" in done[1].stderr
    assert "name a node with --from" in done[2].stderr
    assert "has no node nothing" in done[3].stderr


def test_list_filters_and_pages(shop: Shop) -> None:
    ids = [good(shop.spec(1, name).start()).workflow_id for name in ("a", "b", "b")]
    good(shop.app.workflow_handle(ids[0]).cancel())

    def listed(*options: str) -> Any:
        found = json.loads(shop.run("list", "shop:app", "--json", *options).stdout)
        return [row["id"] for row in found["workflows"]], found["next_before"]

    assert listed() == (ids[::-1], None)
    assert listed("--status", "cancelled") == ([ids[0]], None)
    assert listed("--name", "b", "--limit", "1") == ([ids[2]], ids[2])
    assert listed("--name", "b", "--limit", "1", "--before", ids[2]) == ([ids[1]], None)


def test_the_beginning_of_an_id_is_enough_while_one_workflow_fits(shop: Shop) -> None:
    good(shop.spec(1).start("order-1"))
    good(shop.spec(1).start("order-2"))

    whole, short, several, none = (
        shop.run("show", "-m", "shop:app", prefix) for prefix in ("order-1", "order-2", "ord", "x")
    )

    assert (whole.returncode, short.returncode) == (0, 0)
    assert (several.returncode, none.returncode) == (1, 1)
    assert "ord is the beginning of several ids:\n  order-1\n  order-2" in several.stderr
    assert "there is no workflow x" in none.stderr


def test_a_malformed_command_line_exits_with_two(shop: Shop) -> None:
    done = [shop.run("show", "order-1"), shop.run("show"), shop.run("list", "--status", "gone")]

    assert [one.returncode for one in done] == [2, 2, 2]
    assert os.linesep not in done[0].stdout
