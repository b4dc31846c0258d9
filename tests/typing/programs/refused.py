"""Uses that must not type-check: exactly the lines marked `# refused` are errors."""

from typing import assert_type

import horsies
from horsies import Horsies, TaskError, TaskHandle, TaskResult

app = Horsies()


@app.task("add", timeout_ms=5_000)
def add(left: int, right: int = 0) -> TaskResult[int, TaskError]:
    return TaskResult(ok=left + right)


@app.task("fetch")
async def fetch(url: str) -> TaskResult[bytes, TaskError]:
    return TaskResult(ok=url.encode())


def wrong_arguments() -> None:
    add.send("one")  # refused
    add.send()  # refused
    add.send(1, middle=2)  # refused
    add.schedule("soon", 1)  # refused
    add.schedule(5)  # refused
    add.with_options(unique_key="k").send("one")  # refused


async def wrong_arguments_awaiting() -> None:
    await add.send_async(None)  # refused
    await fetch.send_async(1)  # refused
    await add(1)  # refused


def wrong_options() -> None:
    app.task("later", queue="x")  # refused
    app.task("later", execution="threads")  # refused
    app.task(5)  # refused
    add.with_options(unique_key=5)  # refused
    add.with_options(unique_scope="forever")  # refused
    add.with_options(deadline=None)  # refused


def wrong_results() -> None:
    sent = add.send(1)
    print(sent.ok_value)  # refused
    sent.get()  # refused
    text: str = add(1).unwrap()  # refused
    handle: TaskHandle[str] = sent.unwrap()  # refused
    handle.info(include_resutl=True)  # refused
    assert_type(sent.unwrap().get().ok_value, str)  # refused
    print(text)


def wrong_names() -> None:
    print(horsies.Hosries)  # refused


def wrong_calls_in_bulk() -> None:
    add.send_many([add.bind("1")])  # refused
    add.send_or_raise("1")  # refused
    text: str = add.send_or_raise(1).result()  # refused
    print(text)
