"""What a task of a workflow can learn about its workflow: results of other nodes, and its place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from horsies.codec.results import ResultCodec, read_result
from horsies.result import TaskError, TaskResult
from horsies.result.workflow import SubWorkflowSummary, WorkflowContextMissingIdError
from horsies.workflows.nodes import Node, NodeKey, SubWorkflowNode
from horsies.workflows.summary import read_summary

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkflowMeta:
    """Where a task stands: its workflow, the position of its node, the task's name."""

    workflow_id: str
    task_index: int
    task_name: str


class WorkflowContext:
    """The results of the nodes named in `workflow_ctx_from`, by node or key."""

    def __init__(
        self,
        workflow_id: str,
        task_index: int,
        task_name: str,
        results_by_id: Mapping[str, TaskResult[Any, Any] | str] | None = None,
        summaries_by_id: Mapping[str, SubWorkflowSummary[Any] | str] | None = None,
    ) -> None:
        self.workflow_id = workflow_id
        self.task_index = task_index
        self.task_name = task_name
        self._results = dict(results_by_id or {})
        self._summaries = dict(summaries_by_id or {})

    @classmethod
    def from_serialized(
        cls,
        workflow_id: str,
        task_index: int,
        task_name: str,
        results_by_id: Mapping[str, str] | None = None,
        summaries_by_id: Mapping[str, str] | None = None,
    ) -> "WorkflowContext":
        """Make a context from stored texts, which are read when they are asked for."""
        return cls(workflow_id, task_index, task_name, results_by_id, summaries_by_id)

    def __repr__(self) -> str:
        place = f"{self.workflow_id}, {self.task_name!r} at {self.task_index}"
        return f"<WorkflowContext {place}: {', '.join(self._results) or 'no results'}>"

    def result_for(self, node: Node[T] | NodeKey[T]) -> TaskResult[T, TaskError]:
        """The result of a node, read by the node's own type."""
        node_id = _node_id(node)
        if node_id not in self._results:
            raise _not_here(node_id)
        result = self._results[node_id]
        if isinstance(result, str):
            return read_result(result, ResultCodec(node.ok_type))
        return result

    def has_result(self, node: Node[Any] | NodeKey[Any]) -> bool:
        """Whether `result_for` has something to return."""
        return _node_id(node) in self._results

    def summary_for(self, node: SubWorkflowNode[T] | NodeKey[T]) -> SubWorkflowSummary[T]:
        """How the child workflow of a node ended."""
        node_id = _node_id(node)
        if node_id not in self._summaries:
            raise _not_here(node_id)
        summary = self._summaries[node_id]
        if isinstance(summary, str):
            return read_summary(summary, node.ok_type)
        return summary

    def has_summary(self, node: SubWorkflowNode[Any] | NodeKey[Any]) -> bool:
        """Whether `summary_for` has something to return."""
        return _node_id(node) in self._summaries

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A task parameter of this type accepts a context or its stored form."""
        return core_schema.no_info_plain_validator_function(_read_context)


def _read_context(value: object) -> WorkflowContext:
    if isinstance(value, WorkflowContext):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"expected a WorkflowContext, got {type(value).__name__}")  # noqa: TRY004
    stored = cast("dict[str, Any]", value)
    try:
        return WorkflowContext.from_serialized(**stored)
    except TypeError as error:
        raise ValueError(f"not a stored WorkflowContext: {error}") from None


def _node_id(node: Node[Any] | NodeKey[Any]) -> str:
    if node.node_id is None:
        raise WorkflowContextMissingIdError
    return node.node_id


def _not_here(node_id: str) -> KeyError:
    return KeyError(f"node {node_id!r} is not in workflow context: name it in workflow_ctx_from")
