"""The status object of a task, as the HTTP interface serves it (docs/contract/monitoring.md §4)."""

from horsies.codec.results import UNTYPED, read_result
from horsies.codec.serde import loads_json
from horsies.codes import BrokerErrorCode
from horsies.database.operation import Operation
from horsies.result import Err
from horsies.results.statements import StoredResult, StoredTask, read_results, read_task
from horsies.states import TaskStatus, read_status

_ENDED_BADLY = (TaskStatus.FAILED, TaskStatus.EXPIRED)


def status(task_id: str) -> Operation[StoredTask, dict[str, object] | None]:
    statement = read_task(task_id, with_result=True, with_failed_reason=False, with_log=True)
    return Operation(
        statement,
        lambda rows: _status(rows[0]) if rows else None,
        BrokerErrorCode.TASK_INFO_QUERY_FAILED,
    )


def state_of(task_id: str) -> Operation[StoredResult, str | None]:
    """The state of a task, or `None` when there is no such task."""
    return Operation(
        read_results([task_id]),
        lambda rows: rows[0].status if rows else None,
        BrokerErrorCode.TASK_INFO_QUERY_FAILED,
    )


def _status(row: StoredTask) -> dict[str, object]:
    state = read_status(TaskStatus, row.status)
    return {
        "id": row.task_id,
        "status": state.display,
        "state": state.value,
        "output": _output(row.result) if state is TaskStatus.COMPLETED else None,
        "error": _error(row.result) if state in _ENDED_BADLY else None,
        "worker_pid": row.worker_pid if state is TaskStatus.RUNNING else None,
        "log": row.log,
    }


def _output(text: str | None) -> object:
    """The stored JSON of the ok value: it is for readers that do not know the task's types."""
    stored = loads_json(text)
    if isinstance(stored, Err) or not isinstance(stored.ok_value, dict):
        return None
    return stored.ok_value.get("ok")


def _error(text: str | None) -> str | None:
    if text is None:
        return None
    result = read_result(text, UNTYPED)
    if result.is_ok():
        return None
    error = result.err_value
    code = getattr(error, "error_code", None)
    head = ": ".join(
        str(part)
        for part in (getattr(code, "value", code), getattr(error, "message", None))
        if part
    )
    exception = getattr(error, "exception", None)
    traceback = exception.get("traceback") if isinstance(exception, dict) else None
    return "\n".join(part for part in (head or str(error), traceback) if part)
