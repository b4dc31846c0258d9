"""Uses of the public API that must type-check, with the types they must have."""

from datetime import UTC, datetime, timedelta
from typing import assert_type

from horsies import (
    AppConfig,
    Err,
    Horsies,
    Ok,
    RetryPolicy,
    TaskError,
    TaskHandle,
    TaskInfo,
    TaskResult,
    TaskSendError,
    is_err,
    is_ok,
)

app = Horsies(AppConfig(allow_plain_returns=True))


@app.task("add", timeout_ms=5_000, retry_policy=RetryPolicy.fixed([1], auto_retry_for=["BUSY"]))
def add(left: int, right: int = 0, *, label: str = "") -> TaskResult[int, TaskError]:
    return TaskResult(ok=left + right)


@app.task("fetch", execution="async")
async def fetch(url: str) -> TaskResult[bytes, TaskError]:
    return TaskResult(ok=url.encode())


@app.task("plain")
def plain(name: str) -> list[str]:
    return [name]


@app.task("plain_async")
async def plain_async(name: str) -> dict[str, int]:
    return {name: 1}


def later(count: int) -> TaskResult[float, TaskError]:
    return TaskResult(ok=float(count))


direct = app.task("later", later)


def a_send_takes_the_tasks_own_parameters() -> None:
    add.send(1, 2, label="x")
    add.send(left=1)
    add.schedule(10, 1, right=2)
    plain.send("a")
    direct.send(3)


def a_direct_call_gives_the_tasks_own_result() -> None:
    assert_type(add(1), TaskResult[int, TaskError])
    assert_type(plain("a"), TaskResult[list[str], TaskError])


async def a_coroutine_task_is_awaited() -> None:
    assert_type(await fetch("x"), TaskResult[bytes, TaskError])
    assert_type(await plain_async("x"), TaskResult[dict[str, int], TaskError])
    assert_type((await fetch.send_async("x")).unwrap(), TaskHandle[bytes])


def narrowed_by_function() -> int:
    sent = add.send(1)
    assert_type(sent, Ok[TaskHandle[int]] | Err[TaskSendError])
    if is_err(sent):
        assert_type(sent.err_value, TaskSendError)
        return 0
    assert is_ok(sent)
    result = sent.ok_value.get(timeout_ms=1_000)
    assert_type(result, TaskResult[int, TaskError])
    return result.unwrap()


def narrowed_by_match() -> str:
    match add.send(1):
        case Ok(handle):
            assert_type(handle, TaskHandle[int])
            return handle.task_id
        case Err(error):
            assert_type(error, TaskSendError)
            return error.message


def options_keep_the_types() -> None:
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    options = add.with_options(good_until=in_an_hour, unique_key="k", tags=["a"])
    sent = options.send(1, label="x")
    assert_type(sent.unwrap().get().ok_value, int)
    assert_type(add.with_options(delay=5).schedule(5, 1).unwrap(), TaskHandle[int])
    error = add.send_many([(1, 2), {"left": 3}]).unwrap_err()
    assert_type(add.retry_send_many(error).unwrap(), list[TaskHandle[int]])


async def info_is_typed() -> None:
    handle = add.send(1).unwrap()
    assert_type(handle.info(include_attempts=True).unwrap(), TaskInfo | None)
    assert_type((await handle.info_async(include_log=True)).unwrap(), TaskInfo | None)
    assert_type(handle.cancel().unwrap(), bool)
    assert_type(handle.rerun().unwrap(), TaskHandle[int] | None)


async def values_or_exceptions() -> None:
    assert_type(add.send_or_raise(1, label="x"), TaskHandle[int])
    assert_type(add.send_or_raise(1).result(timeout_ms=1_000), int)
    assert_type(await (await fetch.send_or_raise_async("x")).result_async(), bytes)
    add.send_many([add.bind(1, 2), add.bind(3, label="x")]).unwrap()


def key(order: int) -> str:
    return f"order {order}"


@app.task("ship", priority=3, tags=["shop"], delay=5, unique_key=key)
def ship(order: int) -> int:
    return order
