"""Two apps, or two releases, on one database: each leaves to the other what only that one knows."""

from pathlib import Path

import psycopg
import pytest

from support.command import write_project
from support.eventually import eventually
from support.programs import run_python, worker

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(180)]

APP = """
from typing import Any
from horsies import Horsies, SubWorkflowNode, TaskError, TaskResult, WorkflowDefinition

app = Horsies(unknown_tasks="MODE")

@app.task("NAME.add")
async def add(n: int) -> TaskResult[int, TaskError]:
    return TaskResult(ok=n + 1)

class Child(WorkflowDefinition[int]):
    name = "NAME child"
    definition_key = "NAME.child"

    @classmethod
    def build_with(cls, app: Any) -> Any:
        node = app.tasks["NAME.add"].node(node_id="n")(n=1)
        return app.workflow("NAME child", [node], output=node, definition_key="NAME.child")

node = SubWorkflowNode(workflow_def=Child, node_id="n")
spec = app.workflow("NAME", [node], output=node, definition_key="NAME.parent")
"""
SEND = """
import mail, shop

handles = [one.spec.start().unwrap() for _ in range(6) for one in (mail, shop)]
handles += [one.add.send(1).unwrap() for _ in range(6) for one in (mail, shop)]
print([handle.get(timeout_ms=60_000).unwrap() for handle in handles])
"""
WORKERS = "select count(distinct worker_id) from horsies_worker_states"


@pytest.mark.parametrize("mode", ["leave", "fail"])
def test_two_apps_on_one_database_do_not_fail_each_others_work(
    tmp_path: Path, database_url: str, mode: str
) -> None:
    sources = {
        f"{name}.py": APP.replace("NAME", name).replace("MODE", mode) for name in ("mail", "shop")
    }
    project = write_project(tmp_path, {**sources, "send.py": SEND})
    url = {"HORSIES_DATABASE_URL": database_url}

    with worker(project, "mail:app", **url), worker(project, "shop:app", **url):
        with psycopg.connect(database_url, autocommit=True) as db:
            eventually(lambda: db.execute(WORKERS).fetchone() == (2,), within=60)
        sent = run_python(project, "send.py", **url)

    assert sent.stdout == f"{[2] * 24}\n", sent.stderr
