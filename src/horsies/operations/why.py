"""Why a task does not run: one plain sentence for each rule that holds it back now."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from horsies.operations.listing import whole_id_steps
from horsies.operations.queues import state_of
from horsies.operations.reading import (
    ALIVE_WITHIN,
    Backlog,
    InFlightTask,
    QueueControl,
    WorkerRow,
    controls,
    queue_backlogs,
    tasks_in_flight,
    workers,
)
from horsies.operations.steps import RefusedError, Steps
from horsies.operations.why_nodes import node_reasons
from horsies.operations.why_reading import (
    AHEAD_LIMIT,
    Ahead,
    KnownNames,
    Reason,
    WhyNode,
    WhyTask,
    known_names,
    tasks_ahead,
    why_node,
    why_task,
)
from horsies.operations.words import counted, duration, listed, moment

KindOf: TypeAlias = Callable[[str], str | None]
_KINDS = {"process": "child processes", "blocking": "threads", "async": "coroutines"}
_IN_FLIGHT_READ = 20_000
_SEEN_WITHIN = 20 * ALIVE_WITHIN


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task stands where it stands; `reasons` has every rule that applies now."""

    task_id: str
    task_name: str
    status: str
    reasons: list[Reason]


@dataclass(frozen=True, slots=True)
class _Scene:
    """What surrounds a waiting task."""

    task: WhyTask
    workers: Sequence[WorkerRow]
    names: dict[str, list[str]]
    controls: dict[str, QueueControl]
    in_flight: Sequence[InFlightTask]
    due: dict[str, int]  # by queue, counted only if a worker of its queue serves several
    ahead: Ahead | None
    kind: str | None  # where its code runs, if this process knows the task

    @property
    def control(self) -> QueueControl | None:
        return self.controls.get(self.task.queue_name)

    @property
    def serving(self) -> list[WorkerRow]:
        return _serving(self.workers, self.task.queue_name)

    def held(self, queue_name: str) -> list[InFlightTask]:
        return [one for one in self.in_flight if one.queue_name == queue_name]

    def cap(self, queue_name: str) -> int | None:
        """The cap set at run time, or the least that a worker of the queue was given."""
        control = self.controls.get(queue_name)
        if control is not None and control.max_concurrency is not None:
            return control.max_concurrency
        serving = _serving(self.workers, queue_name)
        caps = [(row.queue_max_concurrency or {}).get(queue_name) for row in serving]
        return min((cap for cap in caps if cap is not None), default=None)

    def may_start(self, queue_name: str) -> bool:
        """Whether a queue has work that its rules let start now."""
        control, cap = self.controls.get(queue_name), self.cap(queue_name)
        is_paused = control is not None and control.paused_at is not None
        is_full = cap is not None and len(self.held(queue_name)) >= cap
        return self.due.get(queue_name, 0) > 0 and not is_paused and not is_full


def _serving(rows: Sequence[WorkerRow], queue_name: str) -> list[WorkerRow]:
    return [row for row in rows if queue_name in row.queues]


def why_steps(asked: str, kind_of: KindOf) -> Steps[Explanation]:
    """Explain a task by its id or the beginning of one, or a node as WORKFLOW/NODE."""
    rows: list[WhyTask] = yield why_task(asked)
    workflow_id, slash, node_id = asked.rpartition("/")
    if slash and not rows:  # an id that was given by hand may hold a slash, too
        return (yield from _node_steps(workflow_id, node_id, kind_of))
    task_id = asked if rows else (yield from whole_id_steps(asked))
    rows = rows or (yield why_task(task_id))
    if not rows:
        raise RefusedError(f"there is no task {task_id} any more")
    (task,) = rows
    if task.status == "PENDING":
        reasons = yield from _waiting_steps(task, kind_of(task.task_name))
    elif task.status in ("CLAIMED", "RUNNING"):
        seen: list[WorkerRow] = yield workers(_SEEN_WITHIN)
        owner = next((row for row in seen if row.worker_id == task.worker_id), None)
        reasons = list(_held_reasons(task, owner))
    else:
        reasons = [_ended_reason(task)]
    return Explanation(task.id, task.task_name, task.status, reasons)


def _waiting_steps(task: WhyTask, kind: str | None) -> Steps[list[Reason]]:
    seen: list[WorkerRow] = yield workers(ALIVE_WITHIN)
    alive = [row for row in seen if not row.is_gone]
    names: list[KnownNames] = yield known_names([row.worker_id for row in alive])
    found: list[QueueControl] = yield controls()
    controlled = {row.queue_name: row for row in found}
    in_flight: list[InFlightTask] = yield tasks_in_flight(_IN_FLIGHT_READ)
    ahead: Ahead | None = None
    backlogs: list[Backlog] = []
    if task.enqueued_at is not None and task.enqueued_at <= task.read_at:
        (ahead,) = yield tasks_ahead(task)
        if any(_better_queues(row, task) for row in alive):
            backlogs = yield queue_backlogs(AHEAD_LIMIT + 1)
    due = {row.queue_name: row.due_count for row in backlogs}
    known = {row.worker_id: row.task_names for row in names}
    scene = _Scene(task, alive, known, controlled, in_flight, due, ahead, kind)
    reasons = [*_own_reasons(task), *_queue_reasons(scene), *_worker_reasons(scene)]
    return reasons or [_nothing("take")]


def _nothing(verb: str) -> Reason:
    return Reason("none", f"Nothing holds it back: a worker should {verb} it within seconds.")


def _own_reasons(task: WhyTask) -> Iterator[Reason]:
    """What the row itself says."""
    now = task.read_at
    if task.good_until is not None and task.good_until <= now:
        yield Reason(
            "deadline",
            f"Its deadline passed {duration(now - task.good_until)} ago: it will not start, and "
            "the next pass of a worker's reaper marks it EXPIRED.",
            "send it again with a later good_until",
        )
    if task.workflow_status == "PAUSED" or task.is_held:
        yield Reason(
            "workflow_paused",
            f"Its workflow {task.workflow_name} is paused.",
            f"horsies workflow resume MODULE {task.workflow_id}",
        )
    if task.enqueued_at is None:
        yield Reason("never_due", "It is due at no time: its enqueued_at is infinite.")
    elif task.enqueued_at > now and task.next_retry_at is not None:
        yield Reason(
            "retry",
            f"It waits for retry {task.retry_count} of {task.max_retries}, due at "
            f"{moment(task.enqueued_at, now)}, in {duration(task.enqueued_at - now)}.",
            f"horsies reschedule MODULE --id {task.id} --at now",
        )
    elif task.enqueued_at > now:
        yield Reason(
            "scheduled",
            f"It is scheduled for {moment(task.enqueued_at, now)}, "
            f"in {duration(task.enqueued_at - now)}.",
            f"horsies reschedule MODULE --id {task.id} --at now",
        )


def _queue_reasons(scene: _Scene) -> Iterator[Reason]:
    """What its queue says."""
    task, control = scene.task, scene.control
    if control is not None and control.paused_at is not None:
        why = f": {control.pause_reason}" if control.pause_reason else ""
        since = moment(control.paused_at, task.read_at)
        yield Reason(
            "queue_paused",
            f"Queue {task.queue_name} was paused by {control.paused_by} at {since}{why}.",
            f"horsies resume {task.queue_name}",
        )
    held = scene.held(task.queue_name)
    yield from _cap(f"queue {task.queue_name}", "queue_cap", scene.cap(task.queue_name), held)
    caps = [row.cluster_wide_cap for row in scene.serving if row.cluster_wide_cap is not None]
    yield from _cap("the whole cluster", "cluster_cap", min(caps, default=None), scene.in_flight)
    yield from _queue_order(scene)
    if scene.ahead is not None and scene.ahead.better_count:
        better = counted(scene.ahead.better_count, AHEAD_LIMIT)
        yield Reason(
            "priority",
            f"It is behind {better} task{'s' * (better != '1')} of better priority in its queue.",
            f"horsies reprioritise MODULE --id {task.id} --priority 1",
        )
    if scene.ahead is not None and scene.ahead.earlier_count:
        earlier = counted(scene.ahead.earlier_count, AHEAD_LIMIT)
        yield Reason(
            "backlog",
            f"It is behind {earlier} task{'s' * (earlier != '1')} of its priority, due before it.",
            "start more workers, or give it a better priority",
        )


def _better_queues(row: WorkerRow, task: WhyTask) -> list[str]:
    """What a worker serves before the queue of the task: it tells its queues best first."""
    return row.queues[: row.queues.index(task.queue_name)] if task.queue_name in row.queues else []


def _queue_order(scene: _Scene) -> Iterator[Reason]:
    """Whether each worker of its queue has work in a better one."""
    better = [
        [name for name in _better_queues(row, scene.task) if scene.may_start(name)]
        for row in scene.serving
        if not row.is_draining
    ]
    if not better or not all(better):
        return
    names = list(dict.fromkeys(name for one in better for name in one))
    said = listed([f"{name} ({counted(scene.due[name], AHEAD_LIMIT)})" for name in names])
    yield Reason(
        "better_queues",
        f"Its workers first take what is due in queue{'s' * (len(names) > 1)} {said}.",
        f"start a worker for it alone: horsies worker MODULE --queues {scene.task.queue_name}",
    )


def _cap(whose: str, rule: str, cap: int | None, held: Sequence[InFlightTask]) -> Iterator[Reason]:
    if cap is None or len(held) < cap:
        return
    names = Counter(one.task_name for one in held).most_common()
    users = listed([f"{name} × {count}" if count > 1 else name for name, count in names])
    yield Reason(
        rule,
        f"The cap of {whose} is in use, {len(held)}/{cap}, by {users}.",
        "wait for one to end, or raise the cap"
        + (f": horsies limit {whose.removeprefix('queue ')} {cap + 1}" * (rule == "queue_cap")),
    )


def _worker_reasons(scene: _Scene) -> Iterator[Reason]:
    """Whether anybody could run it."""
    task = scene.task
    if not scene.serving:
        others = sorted({name for row in scene.workers for name in row.queues})
        seen = f" Live workers serve {listed(others)}." if others else " No worker is alive at all."
        yield Reason(
            "no_worker",
            f"No live worker serves queue {task.queue_name}.{seen}",
            f"horsies worker MODULE --queues {task.queue_name}",
        )
        return
    told = [scene.names[row.worker_id] for row in scene.serving if row.worker_id in scene.names]
    if len(told) == len(scene.serving) and not any(task.task_name in names for names in told):
        yield Reason(
            "unknown_task",
            f"No live worker of queue {task.queue_name} knows a task {task.task_name}: the one "
            "that takes it fails it.",
            "deploy the code that defines it, or check the modules of discover_tasks()",
        )
    if all(row.is_draining for row in scene.serving):
        yield Reason(
            "draining",
            f"Every live worker of queue {task.queue_name} drains: it finishes what it runs and "
            "takes nothing new.",
            f"start another: horsies worker MODULE --queues {task.queue_name}",
        )
        return
    yield from _slot_reasons(scene)


def _slot_reasons(scene: _Scene) -> Iterator[Reason]:
    """Whether those who could run it have a place; workers of 0.2 do not tell theirs."""
    told = [row.slots for row in scene.serving if not row.is_draining]
    for kind, what in _KINDS.items():
        lanes = [(slots or {}).get(kind) for slots in told]
        counts = [(lane.get("slots", 0), lane.get("busy", 0)) for lane in lanes if lane is not None]
        is_full = counts and len(counts) == len(told) and all(busy >= all_ for all_, busy in counts)
        if is_full and scene.kind in (kind, None):
            total = sum(all_ for all_, _ in counts)
            needs = "" if scene.kind else " It waits if it needs one of them."
            yield Reason(
                "slots",
                f"All {total} slots for {what} of the workers of its queue are in use, as "
                f"of their last sign of life.{needs}",
                "wait for one to end, or start more workers",
            )


def _held_reasons(task: WhyTask, owner: WorkerRow | None) -> Iterator[Reason]:
    """A worker has it: does that worker live?"""
    now = task.read_at
    place = "a worker" if owner is None else f"the worker on {owner.hostname} pid {owner.pid}"
    state = "gone" if owner is None else state_of(owner)
    if task.status == "CLAIMED":
        until = task.claim_expires_at
        lease = "" if until is None else f", with a lease until {moment(until, now)}"
        if state == "alive":
            yield Reason("claimed", f"It waits in the buffer of {place}{lease}: it starts soon.")
        else:
            yield Reason(
                "dead_lease",
                f"Its lease is held by {place}, which is {state}{lease}. "
                "Then another worker takes it, or sooner if its death is proven.",
                "start a worker: its death watch gives claims of the dead back in seconds",
            )
        return
    since = "" if task.started_at is None else f" for {duration(now - task.started_at)}"
    where = f"on {task.worker_hostname} pid {task.worker_pid}"
    if state == "alive":
        yield Reason("running", f"It has been running{since} {where}.")
    else:
        yield Reason(
            "dead_worker",
            f"It was running {where}, but its worker is {state}. When its heartbeats are older "
            "than running_stale_threshold_ms a reaper ends the run; its retry policy decides.",
            "start a worker if none is alive: its reaper does this",
        )
    if task.cancel_requested_at is not None:
        at = moment(task.cancel_requested_at, now)
        yield Reason("cancel_requested", f"Its end was asked for at {at}.")


def _ended_reason(task: WhyTask) -> Reason:
    at = moment(task.ended_at, task.read_at)
    took = "" if task.started_at is None else f" after {duration(task.ended_at - task.started_at)}"
    match task.status:
        case "COMPLETED":
            return Reason("completed", f"It completed at {at}{took}.")
        case "FAILED":
            retries = f", after {task.retry_count} retries" if task.retry_count else ""
            why = f": {task.failed_reason}" if task.failed_reason else ""
            text = f"It failed at {at} with {task.error_code or 'an error'}{retries}{why}."
            return Reason("failed", text, f"horsies requeue MODULE --id {task.id}")
        case "EXPIRED":
            text = f"It expired at {at}: it had not started by its deadline."
            return Reason("expired", text, f'app.handle("{task.id}").rerun()')
        case _:
            return Reason("cancelled", f"It was cancelled at {at}.")


def _node_steps(workflow_id: str, node_id: str, kind_of: KindOf) -> Steps[Explanation]:
    """Why a node of a workflow has not begun; one with a task is explained by its task."""
    rows: list[WhyNode] = yield why_node(workflow_id, node_id, [])
    if not rows:
        raise RefusedError(f"there is no node {node_id} in a workflow {workflow_id}")
    node = rows[0]
    if node.task_id is not None:
        return (yield from why_steps(node.task_id, kind_of))
    waited_for: list[WhyNode] = []
    if node.dependencies:
        waited_for = yield why_node(workflow_id, None, node.dependencies)
    reasons = list(node_reasons(node, waited_for)) or [_nothing("start")]
    return Explanation(f"{workflow_id}/{node_id}", node.task_name, node.status, reasons)
