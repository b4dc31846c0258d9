"""The rows of a new workflow and its nodes.

The fields are the members that `horsies_start_workflows` reads: a column is added to both.
"""

from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from horsies.codec.shapes import Json

NodeKind: TypeAlias = Literal["task", "subworkflow", "each", "sleep", "event"]


class NewWorkflow(NamedTuple):
    """A workflow to start. A child names the node of its parent that waits for it."""

    id: str
    name: str
    on_error: str
    output_task_index: int | None
    success_policy: dict[str, Json] | None
    definition_key: str | None
    sent_at: datetime
    node_count: int
    parent_node_id: str | None = None


class NewNode(NamedTuple):
    """A node to store. `settings` is what only its kind needs."""

    id: str
    workflow_id: str
    task_index: int
    node_id: str
    task_name: str
    task_kwargs: str = "{}"
    queue_name: str = "default"
    priority: int = 100
    dependencies: tuple[int, ...] = ()
    dependents: tuple[int, ...] = ()
    args_from: dict[str, int] | None = None
    workflow_ctx_from: tuple[str, ...] | None = None
    allow_failed_deps: bool = False
    join_type: str = "all"
    min_success: int | None = None
    task_options: str | None = None
    good_until: datetime | None = None
    max_retries: int = 0
    kind: NodeKind = "task"
    settings: dict[str, Json] | None = None
    sub_definition_key: str | None = None


class NewRows(NamedTuple):
    """All that one workflow stores at its start."""

    workflow: NewWorkflow
    nodes: list[NewNode]
