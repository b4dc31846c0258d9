"""What tasks report of themselves is stored, and shown by everything that shows tasks."""

import asyncio
import threading
from collections.abc import Callable

from horsies import Horsies, NoCurrentTaskError, TaskProgress, current_task
from horsies.operations.filters import TaskFilter
from support.apps import good, working
from support.eventually import eventually_async

NewApp = Callable[..., Horsies]


async def test_progress_is_stored_while_a_task_runs_and_with_its_end(new_app: NewApp) -> None:
    app = new_app(allow_plain_returns=True)
    middle, go_on = asyncio.Event(), asyncio.Event()

    @app.task("load")
    async def load() -> str:
        task = current_task()
        task.progress(1, 4, "first")
        task.log("loading %s", "files")
        await middle.wait()
        task.progress(2, 4)
        await go_on.wait()
        task.progress(4, 4, "last")
        return task.queue

    handle = good(await load.send_async())
    async with working(app):
        first = await until_progress(app, handle.task_id, 1)
        middle.set()
        second = await until_progress(app, handle.task_id, 2)
        (listed,) = good(await app.operations.tasks_async(TaskFilter(task_names=("load",)))).tasks
        go_on.set()
        assert await handle.result_async(10_000) == "default"

    detail = good(await app.operations.task_async(handle.task_id))
    assert (first[:4], second[:4]) == ((1, 1.0, 4.0, "first"), (1, 2.0, 4.0, None))
    assert listed.progress == second
    assert detail.info.progress[:4] == (1, 4.0, 4.0, "last")
    assert (str(detail.info.progress), detail.info.progress.fraction) == ("4 of 4: last", 1.0)
    assert "loading files" in detail.logs[0].log


async def until_progress(app: Horsies, task_id: str, done: float) -> TaskProgress:
    async def reached() -> TaskProgress | None:
        info = good(await app.get_broker().get_task_info_async(task_id))
        return info.progress if info.progress and info.progress.done == done else None

    found = await eventually_async(reached)
    assert found is not None
    return found


async def test_threads_of_a_task_have_no_task_unless_they_inherit_it(new_app: NewApp) -> None:
    app = new_app(allow_plain_returns=True)

    @app.task("spread")
    async def spread() -> list[str]:
        found: list[str] = []

        def look() -> None:
            try:
                found.append(current_task().name)
            except NoCurrentTaskError:
                found.append("none")

        await asyncio.to_thread(look)
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return found

    handle = good(await spread.send_async())
    async with working(app):
        found = await handle.result_async(10_000)

    assert found == ["spread", "none"]
