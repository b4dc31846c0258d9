"""One `horsies worker` with everything on: what is seen of its loop, threads and children."""

import json
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import workers
from support.apps import good
from support.database import Database
from support.eventually import eventually
from support.workers import WorkerProcess

OBSERVED_APP = Path(workers.__file__).with_name("observed_app.py")
Seen = list[list[Any]]


class Scene:
    """What the worker was given, and what was seen and said."""

    def __init__(self, worker: WorkerProcess, module: Any, observed: Path) -> None:
        self.worker = worker
        self.module = module
        self._observed = observed

    def send(self, how: str) -> dict[str, Any]:
        tasks = (self.module.child, self.module.thread, self.module.loop)
        return {task.task_name: good(task.send(how)) for task in tasks}

    def seen(self, *words: str) -> Seen:
        """What was seen under this word; under several, with the word before it."""
        lines = [json.loads(line) for line in self._observed.read_text().splitlines()]
        return [line[len(words) == 1 :] for line in lines if line[0] in words]

    def get(self, path: str) -> tuple[int, str]:
        """A page of the worker, whatever its status."""
        (line,) = re.findall(r"serving (http://127\.0\.0\.1:\d+)", self.worker.log())
        try:
            with urllib.request.urlopen(f"{line}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def number(self, name: str) -> float:
        """The sum of the samples of a metric."""
        _, text = self.get("/metrics")
        lines = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, lines))

    def said(self, message: str) -> list[dict[str, Any]]:
        """The JSON log lines with this message."""
        lines = [line for line in self.worker.log().splitlines() if line.startswith("{")]
        found = [json.loads(line) for line in lines]
        return [line for line in found if line["message"] == message]


@pytest.fixture
def scene(
    database_url: str, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    observed = tmp_path / "observed"
    observed.touch()
    monkeypatch.setenv("HORSIES_TEST_OBSERVED", str(observed))
    options = ("--processes", "1", "--threads", "1", "--log-format", "json", "--metrics-port", "0")
    worker = WorkerProcess(database_url, *options, locator=f"{OBSERVED_APP}:app")
    module = workers.load_app_module(database_url, {}, OBSERVED_APP)
    yield Scene(worker.wait_ready(), module, observed)
    worker.close()
    module.app.get_broker().close()


def test_every_kind_of_task_is_seen_by_logs_hooks_and_middleware(scene: Scene) -> None:
    kinds = {"child", "thread", "loop"}
    successes, failures, own = scene.send("well"), scene.send("fail"), scene.send("extra")

    results = {name: handle.get(60_000) for name, handle in successes.items()}
    errors = {name: handle.get(60_000) for name, handle in failures.items()}
    for handle in own.values():
        assert handle.get(60_000).is_ok()
    assert scene.worker.stop() == 0

    assert {name: result.ok_value for name, result in results.items()} == {k: k for k in kinds}
    assert all(error.err_value.error_code == "UNHANDLED_EXCEPTION" for error in errors.values())

    # Logs: each record carries its task, attempt and worker, and user code may use the same words.
    lines = scene.said("working well")
    assert {line["task_name"]: line["task_id"] for line in lines} == {
        name: handle.task_id for name, handle in successes.items()
    }
    assert {line["attempt"] for line in lines} == {1}
    assert len({line["worker_id"] for line in lines}) == 1
    assert {line["task_id"] for line in scene.said("working extra")} == {"of the user"}

    # Middleware: where the task runs, the first one outside, with the exception itself.
    layers = [seen[:2] for seen in scene.seen("outer", "inner")]
    for name in ("child", "thread"):  # each runs one task after the other, beside the other kind
        assert [layer for layer, of in layers if of == name] == ["outer", "inner"] * 3
    assert {of for _, of in layers} == {"child", "thread"}
    assert {seen[0] for seen in scene.seen("around")} == {"loop"}
    assert {tuple(seen[:3]) for seen in scene.seen("caught")} == {
        (name, failures[name].task_id, "no horse here") for name in ("child", "thread")
    }
    pids = {seen[0]: seen[-1] for seen in scene.seen("outer")}
    assert pids["thread"] == scene.worker.pid != pids["child"]

    # Hooks: in the worker after the commit, in the sender, whatever the broken one does.
    assert {seen[1] for seen in scene.seen("succeeded")} == {
        handle.task_id for handles in (successes, own) for handle in handles.values()
    }
    assert {tuple(seen[:3]) for seen in scene.seen("failed")} == {
        (name, failures[name].task_id, "LookupError") for name in kinds
    }
    assert len(scene.seen("enqueued")) == 9
    assert (len(scene.seen("worker_started")), len(scene.seen("worker_stopping"))) == (1, 1)
    assert "hooks may break" in scene.worker.log()

    # Traces: each attempt continues the trace of its send, also from a batch in a child.
    scene.module.provider.force_flush()
    spans = {(seen[0], seen[1]): seen[2:4] for seen in scene.seen("span")}
    for name in kinds:
        sends = {trace: span for (what, trace), span in spans.items() if what == f"send {name}"}
        runs = {trace: span for (what, trace), span in spans.items() if what == f"run {name}"}
        assert len(sends) == 3
        assert {trace: span[1] for trace, span in runs.items()} == {
            trace: span[0] for trace, span in sends.items()
        }


def test_metrics_and_health_answer_while_the_loop_is_blocked_and_the_worker_drains(
    scene: Scene,
) -> None:
    eventually(lambda: scene.get("/health/ready")[0] == 200, within=20)
    handles = [good(scene.module.thread.send("well")) for _ in range(3)]
    for handle in handles:
        assert handle.get(60_000).is_ok()
    blocking = good(scene.module.loop.send("block"))

    eventually(lambda: scene.number("horsies_worker_loop_blocked_seconds") > 0.5)
    blocked = [scene.get("/health/live"), scene.get("/health/ready")]
    counted = scene.number("horsies_attempts_total"), scene.number("horsies_run_seconds_count")
    good(scene.module.child.send("block"))
    assert blocking.get(60_000).is_ok()
    eventually(lambda: scene.number("horsies_worker_busy_slots") == 1)
    scene.worker.signal(signal.SIGTERM)
    draining = eventually(
        lambda: scene.get("/health/ready")[0] == 503 and scene.get("/health/ready")
    )

    assert [status for status, _ in blocked] == [200, 200]
    assert counted == (3.0, 3.0)
    assert draining == (503, '{"ready": false, "problems": ["it is stopping"]}\n')
    assert scene.get("/health/live")[0] == 200
    assert scene.get("/else")[0] == 404
    assert scene.worker.wait() == 0


def test_a_port_that_is_taken_is_told(database_url: str, db: Database) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = workers.run_horsies(
            "worker", f"{workers.APP_FILE}:app", "--health-port", port, url=database_url
        )

    assert ended.returncode == 1
    assert f"cannot serve on 127.0.0.1:{port}: Address already in use" in ended.stderr


def test_the_system_in_numbers_is_printed_for_prometheus(database_url: str, db: Database) -> None:
    db.insert(queue_name="mail", enqueued_at="2026-01-01T00:00:00Z")

    printed = workers.run_horsies("metrics", f"{workers.APP_FILE}:app", url=database_url)
    nowhere = workers.run_horsies(
        "metrics", f"{workers.APP_FILE}:app", url="postgresql://127.0.0.1:1/none"
    )

    assert (printed.returncode, nowhere.returncode) == (0, 1)
    assert 'horsies_queue_due_tasks{queue="mail"} 1.0' in printed.stdout
    assert "horsies_up 0.0" in nowhere.stdout
