"""One log line per ended attempt; above some hundred a second they are summed up."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

from horsies.clock import monotonic
from horsies.codec.results import UNTYPED, read_result
from horsies.codes import OperationalErrorCode
from horsies.worker.completer import Recorded
from horsies.worker.held_task import HeldTask

LoggedTasks: TypeAlias = Literal["all", "failures", "none"]

_logger = logging.getLogger("horsies.tasks")
_LINES_PER_SECOND = 200
_UNREADABLE = OperationalErrorCode.WORKER_SERIALIZATION_ERROR.value
_GOOD = ("completed", "cancelled", "interrupted")
_BAD = ("failed", "retried")


class TaskLog:
    """Tells how attempts ended; switched off it costs one comparison per batch."""

    def __init__(self, wanted: LoggedTasks) -> None:
        self._wanted = wanted
        self._second_ends_at = 0.0
        self._line_count = 0
        self._unlogged: Counter[str] = Counter()

    def record(self, ended: Sequence[Recorded]) -> None:
        """Log a batch of ends that are committed."""
        wanted = self._outcomes()
        told = [
            one
            for one in ended
            if one.outcome in wanted or (one.outcome == "failed" and _is_unreadable(one))
        ]
        if not told:
            return
        now = monotonic()
        if now >= self._second_ends_at:
            self._begin_second(now)
        room = max(0, _LINES_PER_SECOND - self._line_count)
        for one in told[:room]:
            if one.outcome in _GOOD:
                self._log_end(one)
            else:
                self._log_failure(one)
        self._line_count += min(room, len(told))
        if len(told) > room:
            self._leave_out(told[room:])

    def _outcomes(self) -> tuple[str, ...]:
        """The outcomes to tell of; a lost claim is told where it is noticed."""
        if self._wanted == "none":
            return ()
        has_good = self._wanted == "all" and _logger.isEnabledFor(logging.INFO)
        return (*_GOOD, *_BAD) if has_good else _BAD

    def _leave_out(self, untold: Sequence[Recorded]) -> None:
        if not self._unlogged:  # one timer at a time, for when no further batch comes
            asyncio.get_running_loop().call_later(1.0, self.sum_up)
        self._unlogged.update(one.outcome for one in untold)

    def _begin_second(self, now: float) -> None:
        self.sum_up()
        self._second_ends_at = now + 1.0
        self._line_count = 0

    def sum_up(self) -> None:
        """Tell in one line what was not told one by one."""
        if self._unlogged:
            counts = ", ".join(f"{count} {outcome}" for outcome, count in self._unlogged.items())
            _logger.info("and more than %d lines a second: %s", _LINES_PER_SECOND, counts)
            self._unlogged.clear()

    def _log_end(self, one: Recorded) -> None:
        task = one.completion.task
        _logger.info(
            "%s %s %s%s (attempt %d, queue %s)",
            task.task_name,
            task.task_id[-8:],
            one.outcome,
            _duration(one),
            task.attempt,
            task.queue_name,
            extra=_fields(one),
        )

    def _log_failure(self, one: Recorded) -> None:
        task, completion = one.completion.task, one.completion
        again = ""
        if one.outcome == "retried" and one.retry_after_s is not None:
            again = f"; it is tried again in {one.retry_after_s:.3g} s"
        reason = ": ".join(
            part for part in (completion.error_code, completion.error_message) if part
        )
        traceback = _traceback(completion.result)
        _logger.warning(
            "%s %s failed%s (attempt %d, queue %s): %s%s%s",
            task.task_name,
            task.task_id,
            _duration(one),
            task.attempt,
            task.queue_name,
            reason,
            again,
            f"\n{traceback}" if traceback else "",
            extra=_fields(one) | {"error_code": completion.error_code},
        )


def _is_unreadable(one: Recorded) -> bool:
    """Rows that a changed signature cannot read are always told, with their ids."""
    return one.completion.error_code == _UNREADABLE


def _duration(one: Recorded) -> str:
    seconds = one.completion.duration_s
    if seconds is None:
        return ""
    return f" in {seconds * 1000:.3g} ms" if seconds < 1 else f" in {seconds:.2f} s"


def _fields(one: Recorded) -> dict[str, object]:
    """What a JSON line carries beside its message."""
    task = one.completion.task
    return {
        "task_name": task.task_name,
        "task_id": task.task_id,
        "attempt": task.attempt,
        "queue": task.queue_name,
        "duration_s": one.completion.duration_s,
        "outcome": one.outcome,
        "retry_after_s": one.retry_after_s,
    }


def _traceback(result: str) -> str | None:
    error = read_result(result, UNTYPED).err if result else None
    exception = getattr(error, "exception", None)
    text = exception.get("traceback") if isinstance(exception, dict) else None
    return text.rstrip() if isinstance(text, str) else None


def what_is_left(returned_count: int, running: Sequence[HeldTask]) -> str:
    """What a stopping worker waits for."""
    parts = [f"{returned_count} claims handed back"] if returned_count else []
    if running:
        shown = ", ".join(f"{task.task_name} {task.task_id}" for task in running[:5])
        more = f" and {len(running) - 5} more" if len(running) > 5 else ""
        count = "1 task" if len(running) == 1 else f"{len(running)} tasks"
        parts.append(f"{count} to finish ({shown}{more}); a second signal ends them")
    return "; ".join(parts)


def what_goes_on(running: Sequence[HeldTask], claimed_count: int, unwritten_count: int) -> str:
    """What a worker is doing."""
    shown = ", ".join(f"{task.task_name} {task.task_id}" for task in running[:20])
    return (
        f"{len(running)} running, {claimed_count} claimed, "
        f"{unwritten_count} outcomes to write: {shown or 'idle'}"
    )
