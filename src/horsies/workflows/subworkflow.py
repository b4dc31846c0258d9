"""Builds the children of sub-workflow nodes from their definitions, by the user's `build_with`."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from horsies.clock import monotonic, utc_now
from horsies.codec.results import serialize_error_payload
from horsies.database.operation import describe
from horsies.errors import HorsiesError
from horsies.observability.trace_context import traceparent_of, with_traceparent
from horsies.result import Err, OperationalErrorCode, TaskError, TaskResult
from horsies.workflows.builders import SpecApp
from horsies.workflows.calls import build_codec
from horsies.workflows.definition import find_definition
from horsies.workflows.rows import NewRows, carrying, rows_of
from horsies.workflows.statements import ReadySubWorkflow

# A `build_with` that takes longer costs its node; its thread cannot be ended and goes on.
LIMIT_S = 10.0
# No build of a batch begins later: with the limit it ends within the lease of its claim.
_LAST_BEGIN_S = 15.0
BUILD_LEASE = timedelta(seconds=LIMIT_S + _LAST_BEGIN_S + 5)


@dataclass(slots=True)
class BuiltChildren:
    """What became of nodes that wait for a child: rows to start, or why there are none."""

    starts: list[NewRows] = field(default_factory=list[NewRows])
    failures: dict[str, str] = field(default_factory=dict[str, str])


async def build_children(app: SpecApp, ready: Sequence[ReadySubWorkflow]) -> BuiltChildren:
    """Build each child in a thread; one that fails or takes too long costs its own node only.

    What is not begun in time is left out; any worker builds it when its lease has passed.
    """
    built = BuiltChildren()
    waiting = deque(ready)
    begin_until = monotonic() + _LAST_BEGIN_S
    while waiting:
        builder = _Builder(app, list(waiting), begin_until)
        builder.start()
        try:
            while waiting:
                async with asyncio.timeout(LIMIT_S):
                    outcome = await builder.built.get()
                if outcome is None:
                    return built
                node = waiting.popleft()
                if isinstance(outcome, NewRows):
                    built.starts.append(outcome)
                else:
                    built.failures[node.node_id] = start_failure(outcome)
        except TimeoutError:
            late = HorsiesError(f"build_with has not ended after {LIMIT_S:.0f} s")
            built.failures[waiting.popleft().node_id] = start_failure(late)
        finally:
            builder.is_abandoned = True
    return built


class _Builder(threading.Thread):
    """Runs `build_with` of nodes one after the other; user code cannot end more than one of them.

    A daemon: a build that never ends must not keep the worker from ending.
    """

    def __init__(self, app: SpecApp, nodes: Sequence[ReadySubWorkflow], begin_until: float) -> None:
        super().__init__(name="build sub-workflows", daemon=True)
        self._app = app
        self._nodes = nodes
        self._begin_until = begin_until
        self._loop = asyncio.get_running_loop()
        # What each node gave, in their order; None when it is too late to begin the next.
        self.built: asyncio.Queue[NewRows | BaseException | None] = asyncio.Queue()
        self.is_abandoned = False

    def run(self) -> None:
        for node in self._nodes:
            if self.is_abandoned:
                return
            outcome: NewRows | BaseException | None = None
            if monotonic() < self._begin_until:
                try:
                    outcome = _build(self._app, node)
                except BaseException as error:  # noqa: BLE001 - user code: build_with
                    outcome = error
            with contextlib.suppress(RuntimeError):  # the worker and its loop have ended
                self._loop.call_soon_threadsafe(self.built.put_nowait, outcome)


def unknown_definition(definition_key: str) -> str:
    """The stored result of a node whose definition no worker knows."""
    return _failure(
        OperationalErrorCode.SUBWORKFLOW_LOAD_FAILED,
        f"no running worker knows the workflow definition {definition_key!r}; "
        "is its module imported?",
    )


def start_failure(error: BaseException) -> str:
    """The stored result of a node whose child could not be built or stored."""
    return _failure(OperationalErrorCode.WORKFLOW_ENQUEUE_FAILED, describe(error))


def _build(app: SpecApp, node: ReadySubWorkflow) -> NewRows:
    definition = find_definition(node.definition_key or "")
    if definition is None or node.kwargs is None:
        raise HorsiesError("the arguments of the sub-workflow cannot be read")
    decoded = build_codec(definition.build_with).decode(None, node.kwargs)
    if isinstance(decoded, Err):
        raise decoded.err_value
    _, kwargs = decoded.ok_value
    spec = definition.build_with(app, **kwargs)
    # A child has the id of its node: built twice, it is stored once.
    rows = rows_of(spec, node.node_id, utc_now(), parent_node_id=node.node_id)
    traceparent = traceparent_of(node.task_options)
    if traceparent is None:
        return rows
    return carrying(rows, lambda options: with_traceparent(options, traceparent))


def _failure(code: OperationalErrorCode, message: str) -> str:
    return serialize_error_payload(TaskResult(err=TaskError(error_code=code, message=message)))
