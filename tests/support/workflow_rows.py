"""Workflows as rows: started, ended as workers end them, written by hand, looked at."""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from horsies.database.functions import call
from horsies.database.statement import Scalar, Statement
from horsies.recovery.statements import recover_workflows
from horsies.worker.held_task import HeldTask
from horsies.workflows import statements
from horsies.workflows.rows import NewNode, NewRows, NewWorkflow
from support.database import FAILURE, OK, Database, at
from support.workflow_model import ModelNode

TERMINAL = ("COMPLETED", "FAILED", "CANCELLED", "EXPIRED")


def failure(code: str) -> str:
    """A stored result with this error."""
    error = {"__task_error__": True, "error_code": code, "message": code}
    return json.dumps({"__task_result__": True, "ok": None, "err": error}, separators=(",", ":"))


def ok(value: Any) -> str:
    """A stored result with this value."""
    return '{"__task_result__":true,"ok":' + json.dumps(value) + ',"err":null}'


def code_of(stored: str | None) -> str:
    """The error code in a stored result or error."""
    assert stored is not None
    error = json.loads(stored)
    error = error.get("err", error)
    code = error["error_code"]
    return str(code if isinstance(code, str) else next(iter(code.values())))


def stored(nodes: Sequence[ModelNode], **columns: Any) -> NewRows:
    """The rows of a workflow; `columns` are of the workflow, `rows` of its nodes by index."""
    workflow_id = columns.get("id") or str(uuid.uuid4())
    changes: Mapping[int, Mapping[str, Any]] = columns.get("rows") or {}
    workflow = NewWorkflow(
        id=workflow_id,
        name=columns.get("name", "flow"),
        on_error=columns.get("on_error", "fail"),
        output_task_index=columns.get("output"),
        success_policy=columns.get("success_policy"),
        definition_key="flow.v1",
        sent_at=at(-1),
        node_count=len(nodes),
        parent_node_id=columns.get("parent_node_id"),
    )
    dependents: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        for dependency in node.dependencies:
            dependents.setdefault(dependency, []).append(index)
    return NewRows(
        workflow,
        [
            NewNode(
                id=str(uuid.uuid4()),
                workflow_id=workflow_id,
                task_index=index,
                node_id=f"n{index}",
                task_name="job",
                dependencies=node.dependencies,
                dependents=tuple(dependents.get(index, ())),
                workflow_ctx_from=tuple(f"n{i}" for i in node.ctx_from) or None,
                allow_failed_deps=node.allow_failed_deps,
                join_type=node.join,
                min_success=node.min_success,
            )._replace(**changes.get(index, {}))
            for index, node in enumerate(nodes)
        ],
    )


def end_tasks(db: Database, results: Mapping[str, str]) -> None:
    """Tasks end with stored results, as a worker ends them: lock, end, advance."""
    db.run(statements.lock_workflows_of_tasks(list(results)))
    for task_id, result in results.items():
        is_ok = json.loads(result)["err"] is None
        db.execute(
            "update horsies_tasks set status = %s, result = %s where id = %s",
            "COMPLETED" if is_ok else "FAILED",
            result,
            task_id,
        )
    (why_not,) = db.run(statements.advance_tasks(list(results)))
    assert why_not.value is None


def recover(db: Database) -> int:
    """One pass over all workflows; how many were stuck."""
    seen_to: str | None = ""
    total = 0
    while seen_to is not None:
        (answer,) = db.run(recover_workflows(seen_to))
        assert answer.failure is None
        total += answer.recovered
        seen_to = answer.looked_to
    return total


def stop(workflow_id: str, act: str) -> Statement[Scalar]:
    """Pause or cancel within the test's own transaction, which a procedure cannot join."""
    return call(f"{act}_workflow", Scalar, of_workflow=workflow_id)


class Flow:
    """One stored workflow."""

    def __init__(self, db: Database, workflow_id: str) -> None:
        self.db = db
        self.id = workflow_id

    @classmethod
    def start(cls, db: Database, *nodes: ModelNode, **columns: Any) -> "Flow":
        """Start it as a worker or a user does."""
        rows = stored(nodes, **columns)
        assert [r.outcome for r in db.run(statements.start_workflows([rows]))] == ["created"]
        return cls(db, rows.workflow.id)

    @classmethod
    def by_hand(cls, db: Database, *nodes: Mapping[str, Any], **columns: Any) -> "Flow":
        """Insert its rows with no more than the contract's columns; nodes PENDING by default."""
        workflow_id = columns.pop("id", None) or str(uuid.uuid4())
        values = {"name": "flow", "status": "RUNNING", **columns}
        db.insert("horsies_workflows", id=workflow_id, **values)
        for index, node in enumerate(nodes):
            given = {"id": str(uuid.uuid4()), "node_id": f"n{index}", "task_name": "job", **node}
            db.insert("horsies_workflow_tasks", workflow_id=workflow_id, task_index=index, **given)
        return cls(db, workflow_id)

    @property
    def row(self) -> dict[str, Any]:
        (row,) = self.db.execute("select * from horsies_workflows where id = %s", self.id)
        return row

    @property
    def status(self) -> str:
        return str(self.row["status"])

    @property
    def nodes(self) -> list[dict[str, Any]]:
        return self.db.execute(
            "select * from horsies_workflow_tasks where workflow_id = %s order by task_index",
            self.id,
        )

    @property
    def states(self) -> list[str]:
        return [node["status"] for node in self.nodes]

    def task(self, index: int) -> dict[str, Any]:
        return self.db.task(self.nodes[index]["task_id"])

    def task_states(self) -> list[str | None]:
        """The states of the nodes' tasks; None without one."""
        rows = self.db.execute(
            "select t.status from horsies_workflow_tasks n left join horsies_tasks t "
            "on t.id = n.task_id where n.workflow_id = %s order by n.task_index",
            self.id,
        )
        return [row["status"] for row in rows]

    def end(self, outcomes: Mapping[int, bool | str]) -> None:
        """The tasks of these nodes end together: ok, failed, or with a stored result."""
        nodes = self.nodes
        results = {
            nodes[index]["task_id"]: (OK if outcome else FAILURE)
            if isinstance(outcome, bool)
            else outcome
            for index, outcome in outcomes.items()
        }
        end_tasks(self.db, results)

    def claims(self, index: int, *, starts: bool = True) -> HeldTask:
        """The task of a node claimed by worker-a; all others stay."""
        task_id = self.nodes[index]["task_id"]
        others = self.db.execute(
            "update horsies_tasks set queue_name = 'aside' "
            "where id <> %s and queue_name = 'default' and status = 'PENDING' returning id",
            task_id,
        )
        (held,) = self.db.claim(int(starts), waiting=int(not starts))
        for other in others:
            back = "update horsies_tasks set queue_name = 'default' where id = %s"
            self.db.execute(back, other["id"])
        assert held.task_id == task_id
        return held

    def pause(self) -> bool | None:
        return self._steer(stop(self.id, "pause"))

    def resume(self) -> bool | None:
        return self._steer(statements.resume_workflow(self.id))

    def cancel(self) -> bool | None:
        return self._steer(stop(self.id, "cancel"))

    def _steer(self, statement: Any) -> bool | None:
        (answer,) = self.db.run(statement)
        value: bool | None = answer.value
        return value

    def start_child(self, index: int, *nodes: ModelNode, **columns: Any) -> "Flow":
        """A worker builds the child of a READY sub-workflow node."""
        node_id = self.nodes[index]["id"]
        return Flow.start(self.db, *nodes, id=node_id, parent_node_id=node_id, **columns)


def sub_workflow() -> dict[str, Any]:
    """What makes a node one with a child."""
    return {"kind": "sub_workflow", "sub_definition_key": "child.v1"}
