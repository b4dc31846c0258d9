"""Pure: how an attempt ended + its task's policy -> the completion that records it."""

from random import Random
from typing import assert_never

from horsies.codec.results import serialize_error_payload
from horsies.executors.base import Crashed, Delivered, NotBegun, Outcome, Stopped, TimedOut
from horsies.result import OperationalErrorCode, OutcomeCode, TaskError, TaskResult
from horsies.tasks.options import parse_task_options
from horsies.tasks.retry import retry_delay_s
from horsies.worker.held_task import Completion, HeldTask


def judge(task: HeldTask, outcome: Outcome, *, random: Random) -> Completion:
    """The completion to write. `task.stop` says why the worker itself ended the run, if it did."""
    match outcome:
        case Delivered():
            return _judge_delivered(task, outcome, random)
        case Crashed(message, reason, exit_code, signal, log, truncated):
            error = TaskError(
                error_code=OperationalErrorCode.WORKER_CRASHED,
                message=message,
                data={"exit_code": exit_code, "signal": signal},
            )
            return _lost(task, error, reason, (log, truncated), random)
        case TimedOut(limit_ms, log, truncated):
            text = f"The task timed out: it ran longer than its limit of {limit_ms} ms"
            error = TaskError(
                error_code=OutcomeCode.TASK_TIMEOUT, message=text, data={"timeout_ms": limit_ms}
            )
            return _lost(task, error, text, (log, truncated), random)
        case Stopped() | NotBegun():
            return _judge_stopped(task, outcome, random)
        case never:  # pyright: ignore[reportUnnecessaryComparison]  # proof that none is left
            assert_never(never)


def _judge_stopped(task: HeldTask, outcome: Stopped | NotBegun, random: Random) -> Completion:
    if task.stop == "cancel":
        return _cancelled(task, outcome)
    if task.stop == "drain" or isinstance(outcome, NotBegun):
        return Completion(task, "", "interrupt")
    text = "Worker process crashed: the worker was told to stop at once"
    error = TaskError(
        error_code=OperationalErrorCode.WORKER_CRASHED,
        message=text,
        data={"exit_code": None, "signal": None},
    )
    return _lost(task, error, text, (outcome.log, outcome.log_truncated), random)


def _cancelled(task: HeldTask, outcome: Stopped | NotBegun) -> Completion:
    message = "The task was cancelled while it was running"
    error = TaskError(
        error_code=OutcomeCode.TASK_CANCELLED, message=message, data={"task_id": task.task_id}
    )
    text = serialize_error_payload(TaskResult(err=error))
    if isinstance(outcome, NotBegun):  # no message: no attempt is recorded
        return Completion(task, text, "cancel")
    return Completion(
        task, text, "cancel", error_message=message,
        log=outcome.log, log_truncated=outcome.log_truncated,
    )  # fmt: skip


def unstorable(task: HeldTask, reason: str) -> Completion:
    """What is recorded instead of an outcome that PostgreSQL refuses."""
    error = TaskError(
        error_code=OperationalErrorCode.WORKER_SERIALIZATION_ERROR,
        message=f"the outcome cannot be stored: {reason}",
        data={"task_name": task.task_name},
    )
    return _failed(task, error)


def _judge_delivered(task: HeldTask, delivered: Delivered, random: Random) -> Completion:
    if delivered.is_ok:
        log, is_cut = delivered.log, delivered.log_truncated
        return Completion(task, delivered.result, "complete", log, is_cut, delivered.duration_s)
    return Completion(
        task,
        delivered.result,
        "fail",
        attempt_outcome="FAILED",
        error_code=delivered.error_code,
        error_message=delivered.error_message,
        retry_delay_s=_delay(task, delivered.error_code, random, delivered.retry_wish),
        log=delivered.log,
        log_truncated=delivered.log_truncated,
        duration_s=delivered.duration_s,
    )


def _lost(
    task: HeldTask,
    error: TaskError,
    reason: str,
    log: tuple[str | None, bool],
    random: Random,
) -> Completion:
    code = str(error.error_code)
    return Completion(
        task,
        serialize_error_payload(TaskResult(err=error)),
        "fail",
        attempt_outcome="WORKER_FAILURE",
        error_code=code,
        error_message=error.message,
        failed_reason=reason,
        retry_delay_s=_delay(task, code, random),
        log=log[0],
        log_truncated=log[1],
    )


def _failed(task: HeldTask, error: TaskError) -> Completion:
    return Completion(
        task,
        serialize_error_payload(TaskResult(err=error)),
        "fail",
        attempt_outcome="FAILED",
        error_code=str(error.error_code),
        error_message=error.message,
    )


def _delay(
    task: HeldTask, code: str | None, random: Random, wish: float | None = None
) -> float | None:
    policy = parse_task_options(task.task_options).retry_policy
    return retry_delay_s(policy, code, task.attempt, random=random, wish=wish)
