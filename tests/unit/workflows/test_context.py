"""What a task learns about its workflow, and how it travels in stored arguments."""

import json
from typing import Any

import pytest

from horsies import (
    ContractCode,
    NodeKey,
    OperationalErrorCode,
    OutcomeCode,
    SubWorkflowError,
    SubWorkflowNode,
    SubWorkflowSummary,
    TaskError,
    TaskNode,
    TaskResult,
    WorkflowContext,
    WorkflowContextMissingIdError,
    WorkflowMeta,
    WorkflowStatus,
)
from horsies.codec.injected import CONTEXT_KEY, META_KEY, injected_result
from horsies.codec.results import ResultCodec, read_result
from horsies.codec.serde import dumps_json
from horsies.workflows.summary import read_summary, write_summary
from support.codec_models import Horse
from support.flows import Numbers, anything, app, count, feed, foal, report

FURY = Horse(name="Fury", age=3)
FURY_TEXT = ResultCodec(Horse).encode(TaskResult(ok=FURY))
THREE_TEXT = '{"__task_result__":true,"ok":3,"err":null}'
SUMMARY: SubWorkflowSummary[int] = SubWorkflowSummary(WorkflowStatus.COMPLETED, 3, 4, 2, 1, 1, "x")
META = {"workflow_id": "w", "task_index": 2, "task_name": "t"}
CONTEXT = {**META, "results_by_id": {"three": THREE_TEXT}, "summaries_by_id": {}}


@app.task("context.required")
def required(
    workflow_ctx: WorkflowContext, workflow_meta: WorkflowMeta
) -> TaskResult[str, TaskError]:
    return TaskResult(ok=f"{workflow_ctx} {workflow_meta}")


@app.task("context.lost")
def lost(workflow_ctx: WorkflowContext | None = None) -> TaskResult[int, TaskError]:
    assert workflow_ctx is not None
    return TaskResult(ok=workflow_ctx.result_for(TaskNode(fn=foal)).unwrap().age)


def context(**results: Any) -> WorkflowContext:
    return WorkflowContext.from_serialized("w", 2, "t", results)


def arguments(task: Any, **stored: Any) -> dict[str, Any]:
    decoded = task.definition.decode_arguments(None, json.dumps(stored))
    read: dict[str, Any] = decoded.unwrap()[1]
    return read


def test_a_result_is_read_by_the_nodes_type() -> None:
    node = TaskNode(fn=foal, node_id="foal")
    text = ResultCodec(Any).encode(TaskResult(ok={"name": "Fury", "age": 1, "wins": 0}))

    result = context(foal=text).result_for(node)

    assert result.unwrap().name == "Fury"


def test_a_result_is_read_by_the_keys_type() -> None:
    assert context(fury=FURY_TEXT).result_for(NodeKey[Horse]("fury")).unwrap() == FURY
    assert context(fury=FURY_TEXT).result_for(NodeKey("fury")).unwrap() == {
        "name": "Fury",
        "age": 3,
    }


def test_results_may_be_given_as_objects() -> None:
    given = WorkflowContext("w", 0, "t", {"a": TaskResult(ok=1)})

    assert given.result_for(NodeKey[int]("a")) == TaskResult(ok=1)
    assert (given.workflow_id, given.task_index, given.task_name) == ("w", 0, "t")


def test_an_unreadable_result_is_an_error_result() -> None:
    result = context(a="{not json").result_for(NodeKey[int]("a"))

    assert result.unwrap_err().error_code is OperationalErrorCode.RESULT_DESERIALIZATION_ERROR


@pytest.mark.parametrize("method", ["result_for", "summary_for"])
def test_a_node_outside_the_context_is_a_key_error(method: str) -> None:
    with pytest.raises(KeyError, match="not in workflow context"):
        getattr(context(a=THREE_TEXT), method)(NodeKey("b"))


@pytest.mark.parametrize("method", ["result_for", "has_result", "summary_for", "has_summary"])
def test_a_node_without_id_cannot_be_looked_up(method: str) -> None:
    with pytest.raises(WorkflowContextMissingIdError, match="TaskNode node_id is not set"):
        getattr(context(), method)(SubWorkflowNode(workflow_def=Numbers))


def test_presence_can_be_asked_for() -> None:
    found = context(a=THREE_TEXT)

    assert (found.has_result(NodeKey("a")), found.has_result(NodeKey("b"))) == (True, False)
    assert not found.has_summary(NodeKey("a"))


def test_a_summary_is_read_by_the_childs_type() -> None:
    found = WorkflowContext.from_serialized("w", 0, "t", {}, {"child": write_summary(SUMMARY, int)})

    assert found.summary_for(SubWorkflowNode(workflow_def=Numbers, node_id="child")) == SUMMARY
    assert found.has_summary(NodeKey("child"))


def test_a_summary_survives_storage() -> None:
    typed: SubWorkflowSummary[Horse] = SubWorkflowSummary(
        WorkflowStatus.FAILED, FURY, 1, 0, 1, 0, None
    )

    assert read_summary(write_summary(typed, Horse), Horse) == typed


def test_left_uncaught_a_missing_id_has_its_own_code() -> None:
    result = lost(workflow_ctx=context())

    assert result.unwrap_err().error_code is ContractCode.WORKFLOW_CTX_MISSING_ID


def test_context_and_metadata_become_parameters() -> None:
    read = arguments(required, **{CONTEXT_KEY: CONTEXT, META_KEY: META})

    assert read["workflow_meta"] == WorkflowMeta("w", 2, "t")
    assert read["workflow_ctx"].result_for(NodeKey[int]("three")) == TaskResult(ok=3)


def test_optional_parameters_receive_them_too() -> None:
    read = arguments(report, **{CONTEXT_KEY: CONTEXT, META_KEY: META})

    assert isinstance(read["workflow_ctx"], WorkflowContext)
    assert read["workflow_meta"].task_index == 2


def test_an_absent_context_can_be_said() -> None:
    assert arguments(report, **{CONTEXT_KEY: None}) == {"workflow_ctx": None}


@pytest.mark.parametrize("task", [anything, foal], ids=["**kwargs", "plain"])
def test_what_a_function_does_not_declare_is_dropped(task: Any) -> None:
    assert arguments(task, **{CONTEXT_KEY: CONTEXT, META_KEY: META, "name": "x"}) == {"name": "x"}


def test_the_injected_value_wins_over_a_given_one() -> None:
    read = arguments(report, workflow_meta=None, **{META_KEY: META})

    assert read == {"workflow_meta": WorkflowMeta("w", 2, "t")}


def test_a_result_of_another_node_is_read_by_the_parameter() -> None:
    assert arguments(feed, horse=injected_result(FURY_TEXT)) == {"horse": TaskResult(ok=FURY)}


def test_a_result_reaches_a_parameter_of_a_union() -> None:
    assert arguments(report, total=injected_result(THREE_TEXT)) == {"total": TaskResult(ok=3)}


def test_a_result_reaches_var_kwargs_untyped() -> None:
    assert arguments(anything, some=injected_result(FURY_TEXT)) == {
        "some": TaskResult(ok={"name": "Fury", "age": 3})
    }


def test_an_error_reaches_the_parameter() -> None:
    error = TaskError(error_code=OutcomeCode.UPSTREAM_SKIPPED, data={"dependency_index": 1})
    text = ResultCodec(Any).encode(TaskResult(err=error))

    read = arguments(count, rows=injected_result(text))["rows"]

    assert read.unwrap_err().error_code is OutcomeCode.UPSTREAM_SKIPPED
    assert read.unwrap_err().data == {"dependency_index": 1}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a":1}', None, 5])
def test_an_unreadable_result_does_not_spoil_the_arguments(text: Any) -> None:
    read = arguments(count, rows=injected_result(text), minimum=2)

    assert read["minimum"] == 2
    error = read["rows"].unwrap_err()
    assert error.error_code is OperationalErrorCode.RESULT_DESERIALIZATION_ERROR


def test_a_result_that_does_not_fit_is_an_error_in_the_parameter() -> None:
    read = arguments(count, rows=injected_result(FURY_TEXT))

    error = read["rows"].unwrap_err()
    assert error.error_code is ContractCode.PYDANTIC_HYDRATION_ERROR


def test_users_cannot_send_the_engines_tags() -> None:
    assert dumps_json({"x": {"__horsies_taskresult__": True, "data": "x"}}).is_err()


def test_an_invalid_context_is_refused() -> None:
    assert required.definition.decode_arguments(None, json.dumps({CONTEXT_KEY: [1]})).is_err()
    assert required.definition.decode_arguments(None, json.dumps({CONTEXT_KEY: {}})).is_err()


def test_the_error_of_a_child_survives_storage() -> None:
    error = SubWorkflowError(
        error_code=OutcomeCode.SUBWORKFLOW_FAILED,
        message="child failed",
        sub_workflow_id="child-1",
        sub_workflow_summary=SUMMARY,
    )

    read = read_result(ResultCodec(int).encode(TaskResult(err=error)), ResultCodec(int)).err

    assert isinstance(read, SubWorkflowError)
    assert (read.error_code, read.sub_workflow_id) == (OutcomeCode.SUBWORKFLOW_FAILED, "child-1")
    assert read.sub_workflow_summary == SUMMARY
