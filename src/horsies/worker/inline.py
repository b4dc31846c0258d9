"""Run waiting tasks here and now, on a connection of the caller's: for tests and eager modes.

Everything happens on that one connection, so it also works inside a transaction that is rolled
back. There are no children, no heartbeats and no time limits.
"""

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from horsies.app import Horsies
from horsies.database.statement import Statement
from horsies.executors import attempt
from horsies.executors.base import Delivered
from horsies.executors.host import Host
from horsies.observability.trace_context import traceparent_of
from horsies.worker.child_main import AppDefinitions
from horsies.worker.claim_request import ClaimLimits, ClaimRequest, LaneRequest
from horsies.worker.held_task import Completion, HeldTask
from horsies.worker.identity import WorkerIdentity, own_identity
from horsies.worker.outcome import judge
from horsies.worker.settings import ServedQueue
from horsies.worker.statements import (
    claim_tasks,
    complete_tasks,
    fail_tasks,
    start_one,
    store_progress,
)

Run = Callable[[Statement[Any]], list[Any]]

_LEASE = timedelta(minutes=1)
_random = random.SystemRandom()


def run_waiting(app: Horsies, run: Run, queues: Sequence[str], *, max_tasks: int | None) -> int:
    """Claim and run task after task until none is due; return how many ran."""
    identity, count = own_identity(), 0
    while max_tasks is None or count < max_tasks:
        taken = run(claim_tasks(_one_from(queues, identity)))
        tasks = [row for row in taken if isinstance(row, HeldTask)]
        if not tasks:
            break
        _perform(app, run, identity, tasks[0])
        count += 1
    return count


def run_one(app: Horsies, run: Run, task_id: str) -> bool:
    """Run one task by its id, whatever waits before it; False if it is not due."""
    identity = own_identity()
    tasks = run(start_one(task_id, identity))
    if tasks:
        _perform(app, run, identity, tasks[0])
    return bool(tasks)


def _perform(app: Horsies, run: Run, identity: WorkerIdentity, task: HeldTask) -> None:
    completion = judge(task, _outcome(app, task, identity), random=_random)
    _record(run, identity, completion)


def _one_from(queues: Sequence[str], identity: WorkerIdentity) -> ClaimRequest:
    return ClaimRequest(
        identity=identity,
        lease=_LEASE,
        queues=[ServedQueue(name, 100, None) for name in queues],
        lanes=[LaneRequest(starts=1, claims=0, child_pids=[os.getpid()])],
        limits=ClaimLimits(),
        marks={},
        is_full_scan=True,
        permit=None,
    )


def _outcome(app: Horsies, task: HeldTask, identity: WorkerIdentity) -> Delivered:
    host = Host(AppDefinitions(app, None, identity.worker_id))
    task.traceparent = traceparent_of(task.task_options)
    definition = app.definition(task.task_name)
    if definition is not None and definition.is_coroutine:
        return asyncio.run(attempt.run_alone_async(definition, task, host))
    return attempt.run_alone(definition, task, host)


def _record(run: Run, identity: WorkerIdentity, completion: Completion) -> None:
    task = completion.task
    if task.progress is not None:
        run(store_progress([(task, task.progress)]))
    if completion.ending == "complete":
        run(complete_tasks(identity.worker_id, [completion]))
    else:
        run(fail_tasks(identity.worker_id, [completion]))
