"""Any order of sends, claims, ends, crashes, sweeps and time keeps the table of transitions."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from horsies.database.statement import run_blocking
from horsies.ids import new_id
from horsies.operations import statements as operations
from horsies.recovery import statements as recovery
from horsies.recovery.lost_runs import judge_lost
from horsies.sending.rows import NewTask
from horsies.sending.statements import enqueue_tasks
from horsies.states import TASK_TRANSITIONS, TaskStatus
from horsies.worker import statements as tasks
from horsies.worker.claim_request import ClaimLimits, ClaimRequest, LaneRequest
from horsies.worker.held_task import Completion, HeldTask
from horsies.worker.identity import WorkerIdentity
from horsies.worker.settings import ServedQueue

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(300)]

EXAMPLES = int(os.environ.get("HORSIES_FAULT_EXAMPLES", "40"))
WORKERS = st.sampled_from(["w1", "w2", "w3"])
STALE = timedelta(seconds=60)
LEASE = timedelta(seconds=30)
ERROR = '{"__task_result__":true,"ok":null,"err":{"__task_error__":true,"error_code":"X"}}'


class Engine(RuleBasedStateMachine):
    """Workers that may forget what they hold, over the real stored functions."""

    connection: psycopg.Connection[Any]

    def __init__(self) -> None:
        super().__init__()
        self.connection.rollback()
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.held: dict[str, list[HeldTask]] = {"w1": [], "w2": [], "w3": []}
        self.running: dict[str, list[HeldTask]] = {"w1": [], "w2": [], "w3": []}
        self.sent: set[str] = set()
        self.seen: dict[str, TaskStatus] = {}
        self.ended_attempts: dict[tuple[str, int], str] = {}
        self._set_clock()

    def _set_clock(self) -> None:
        self.connection.execute("select set_config('horsies.now', %s, true)", [str(self.now)])

    def _run(self, statement: Any) -> list[Any]:
        return run_blocking(self.connection, statement)

    @rule(
        deadline=st.none() | st.integers(-5, 90),
        delay=st.just(0) | st.integers(1, 40),
        retries=st.integers(0, 2),
    )
    def send(self, deadline: int | None, delay: int, retries: int) -> None:
        good_until = None if deadline is None else self.now + timedelta(seconds=deadline)
        task_id = new_id()
        row = NewTask(
            task_id, "t", "default", 100, None, None, self.now, None, float(delay), good_until,
            retries, None, "sha",
        )  # fmt: skip
        assert self._run(enqueue_tasks([row]))[0].outcome == "created"
        self.sent.add(task_id)

    @rule(worker=WORKERS, starts=st.integers(0, 3), claims=st.integers(0, 3))
    def claim(self, worker: str, starts: int, claims: int) -> None:
        request = ClaimRequest(
            identity=WorkerIdentity(worker, "h", 1),
            lease=LEASE,
            queues=[ServedQueue("default", 1, None)],
            lanes=[LaneRequest(starts, claims, is_sparse=True)],
            limits=ClaimLimits(),
            marks={},
            is_full_scan=True,
        )
        rows = self._run(tasks.claim_tasks(request))
        claimed = [row for row in rows if isinstance(row, HeldTask)]
        assert len(claimed) <= starts + claims
        for task in claimed:
            (self.running if task.pid is not None else self.held)[worker].append(task)

    @rule(worker=WORKERS)
    def start(self, worker: str) -> None:
        waiting, self.held[worker] = self.held[worker], []
        if waiting:
            receipts = self._run(
                tasks.start_tasks(WorkerIdentity(worker, "h", 1), waiting, [1] * len(waiting))
            )
            started = {r.task_id for r in receipts if r.outcome == "started"}
            self.running[worker] += [task for task in waiting if task.task_id in started]

    @rule(worker=WORKERS)
    def give_back(self, worker: str) -> None:
        waiting, self.held[worker] = self.held[worker], []
        if waiting:
            self._run(tasks.return_tasks(worker, waiting))

    @precondition(lambda self: any(self.running.values()))
    @rule(
        data=st.data(),
        ending=st.sampled_from(["complete", "fail", "retry", "cancel", "interrupt"]),
    )
    def finish(self, data: st.DataObject, ending: str) -> None:
        worker = data.draw(st.sampled_from([name for name in self.running if self.running[name]]))
        task = data.draw(st.sampled_from(self.running[worker]))
        self.running[worker].remove(task)
        end = Completion(
            task, ERROR, "fail", attempt_outcome="FAILED", error_code="X", error_message="x"
        )
        match ending:
            case "complete":
                self._run(tasks.complete_tasks(worker, [Completion(task, '{"ok":1}')]))
            case "fail":
                self._run(tasks.fail_tasks(worker, [end]))
            case "retry":
                self._run(tasks.fail_tasks(worker, [end._replace(retry_delay_s=5.0)]))
            case "cancel":
                self._run(tasks.cancel_running_tasks(worker, [end]))
            case _:
                self._run(tasks.interrupt_tasks(worker, [end]))

    @rule(worker=WORKERS)
    def crash(self, worker: str) -> None:
        """The worker forgets everything; late ends of its claims never come."""
        self.held[worker], self.running[worker] = [], []

    @rule(seconds=st.integers(1, 100))
    def pass_time(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        self._set_clock()

    @rule()
    def sweep(self) -> None:
        self._run(recovery.requeue_stale_claims(STALE, []))
        runs = self._run(recovery.lost_runs(STALE))
        if runs:
            lost = [judge_lost(run, STALE) for run in runs]
            assert len(self._run(recovery.fail_lost_runs(STALE, lost))) == len(runs)
        self._run(recovery.expire_tasks())

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.sent:
            task_id = data.draw(st.sampled_from(sorted(self.sent)))
            self._run(operations.cancel_tasks([task_id]))

    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        if self.sent:
            task_id = data.draw(st.sampled_from(sorted(self.sent)))
            self._run(operations.requeue_tasks([task_id], include_completed=True))

    @invariant()
    def only_allowed_transitions(self) -> None:
        rows = self.connection.execute("select id, status from horsies_tasks").fetchall()
        states = {task_id: TaskStatus(status) for task_id, status in rows}
        assert states.keys() == self.sent, "no task is lost, none appears"
        for task_id, status in states.items():
            before = self.seen.get(task_id, TaskStatus.PENDING)
            # One rule may make two moves in one transaction: a lease passes and the row is claimed.
            two_steps = {s for step in TASK_TRANSITIONS[before] for s in TASK_TRANSITIONS[step]}
            allowed = {before} | TASK_TRANSITIONS[before] | two_steps
            assert status in allowed, f"{before} -> {status}"
            if before is TaskStatus.EXPIRED:
                assert status is TaskStatus.EXPIRED
        self.seen = states

    @invariant()
    def attempts_are_immutable_and_without_gaps(self) -> None:
        rows = self.connection.execute(
            "select task_id, attempt, outcome from horsies_task_attempts"
        ).fetchall()
        ended = {(task_id, attempt): outcome for task_id, attempt, outcome in rows}
        assert self.ended_attempts.items() <= ended.items()
        self.ended_attempts = ended
        for task_id in self.sent:
            numbers = sorted(attempt for other, attempt in ended if other == task_id)
            assert numbers == list(range(1, len(numbers) + 1))

    @invariant()
    def columns_fit_the_state(self) -> None:
        broken = self.connection.execute(
            """
            select id, status from horsies_tasks where
                (status = 'CLAIMED') is distinct from claimed
                or (status = 'CLAIMED' and (claimed_at is null or claim_expires_at is null))
                or (status <> 'CLAIMED' and claim_expires_at is not null)
                or (status = 'RUNNING' and (started_at is null or worker_pid is null))
                or (finalizing_at is not null and status <> 'RUNNING')
                or (completed_at is not null) <> (status = 'COMPLETED')
                or (status in ('FAILED', 'EXPIRED') and (failed_at is null or result is null))
            """
        ).fetchall()
        assert not broken


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url) as connection:
        yield connection
        connection.rollback()


def test_no_order_of_events_breaks_the_lifecycle(connection: psycopg.Connection[Any]) -> None:
    machine = type("ConnectedEngine", (Engine,), {"connection": connection})

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
