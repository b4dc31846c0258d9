"""A real worker process answers pings, and `horsies ping` tells by its exit code."""

from pathlib import Path

from horsies import AppConfig, Horsies, PostgresConfig
from support.command import run_horsies, write_project
from support.eventually import eventually
from support.programs import worker

APP = """
from horsies import *
app = Horsies(AppConfig(queue_mode=QueueMode.CUSTOM, custom_queues=[
    CustomQueueConfig(name="mail"), CustomQueueConfig(name="fax")]))
@app.task("job", queue_name="mail")
async def job() -> TaskResult[int, TaskError]:
    return TaskResult(ok=1)
"""


def test_a_worker_process_answers_and_the_command_counts(tmp_path: Path, database_url: str) -> None:
    project = write_project(tmp_path, {"queue_app.py": APP})
    environment = {"HORSIES_DATABASE_URL": database_url}
    app = Horsies(AppConfig(broker=PostgresConfig(database_url=database_url)))

    with worker(project, "queue_app", **environment) as process:
        (pong,) = eventually(lambda: app.ping_workers(timeout_ms=300).unwrap(), within=20)
        options = ("ping", "queue_app", "--timeout-ms", "1000")
        alone = run_horsies(project, *options, **environment)
        enough = run_horsies(project, *options, "--workers", "1", **environment)
        too_few = run_horsies(project, *options, "--workers", "2", **environment)
    app.get_broker().close()

    assert (pong.pid, pong.queues) == (process.pid, ["mail", "fax"])
    assert (alone.returncode, enough.returncode, too_few.returncode) == (0, 0, 1)
    assert "database: PostgreSQL" in alone.stdout
    assert f"pid {process.pid}" in enough.stdout
    assert "1 of 2 worker(s) answered" in too_few.stdout
