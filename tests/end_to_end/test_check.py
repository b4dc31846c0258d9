"""`horsies check`: every code with its place and its cure, all problems at once, exit code 1."""

import queue
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from horsies import ConfigurationError, ErrorCode
from horsies.worker import child_main
from support.command import COMMAND, run_horsies, write_project

URL = "postgresql://nobody@127.0.0.1:1/nowhere"
IMPORTS = f"""from horsies import *
BROKER = PostgresConfig(database_url="{URL}")
"""
APP = f"{IMPORTS}app = Horsies(AppConfig(broker=BROKER))\n"
TASK = "def job() -> TaskResult[int, TaskError]:\n    return TaskResult(ok=1)\n"
WRAPPED = """
def noisy(function):
    def inner(*args):
        return function(*args)
    return inner
@app.task("job")
@noisy
"""
CUSTOM = (
    f"{IMPORTS}app = Horsies(AppConfig(broker=BROKER, queue_mode=QueueMode.CUSTOM,"
    " custom_queues=[CustomQueueConfig(name='mail')]))\n"
)
OTHER = "from queue_app import *\n"


def config(setting: str) -> str:
    return f"{IMPORTS}app = Horsies(AppConfig(broker=BROKER, {setting}))\n"


class Wrong(NamedTuple):
    code: str
    source: str
    said: str
    place: str  # the source line the error points to; empty when it is about no line


CASES = [
    Wrong("HRS-100", f"{APP}@app.task('job')\ndef job():\n    pass\n", "return annotation", "@app"),
    Wrong("HRS-101", f"{APP}@app.task('job')\ndef job() -> int:\n    ...\n", "TaskResult", "@app"),
    Wrong("HRS-102", f"{APP}@app.task('job', nice=1)\n{TASK}", "unknown task option", "@app"),
    Wrong("HRS-103", f"{CUSTOM}@app.task('job', queue_name='fax')\n{TASK}", "fax", "@app"),
    Wrong("HRS-104", f"{APP}{WRAPPED}{TASK}", "plain function", "@app"),
    Wrong("HRS-200", f"{APP}@app.task('j', queue_name='x')\n{TASK}", "queue_name", "@app"),
    Wrong("HRS-200", config("queue_mode=QueueMode.CUSTOM"), "custom_queues required", "app ="),
    Wrong("HRS-201", config("cluster_wide_cap=0"), "must be positive", "app ="),
    Wrong("HRS-202", config("prefetch_buffer=3"), "claim_lease_ms required", "app ="),
    Wrong(
        "HRS-203", "from horsies import *\nPostgresConfig(database_url='mysql://x')\n", "", "Pos"
    ),
    Wrong(
        "HRS-204",
        config("recovery=RecoveryConfig(running_stale_threshold_ms=1000)"),
        "running_stale_threshold_ms too low",
        "app =",
    ),
    Wrong("HRS-206", "app = 5\n", "defines no Horsies app", ""),
    Wrong("HRS-206", "import not_there\n", "not_there", "import not_there"),
    Wrong(
        "HRS-208",
        config("resilience=WorkerResilienceConfig(db_retry_initial_ms=5000, db_retry_max_ms=500)"),
        "db_retry_max_ms must be >= db_retry_initial_ms",
        "app =",
    ),
    Wrong("HRS-209", config("exception_mapper={OSError: 'bad'}"), "Mapper value", "app ="),
    Wrong("HRS-209", config("default_unhandled_error_code='bad'"), "is invalid", "app ="),
    Wrong("HRS-210", f"{APP}1 / 0\n", "error while importing module", "1 / 0"),
    Wrong("HRS-210", f"{APP}def broken(:\n", "error while importing module", "def broken(:"),
    Wrong("HRS-212", config("exception_mapper={OSError: 'WAIT_TIMEOUT'}"), "WAIT_TIMEOUT", ""),
    Wrong(
        "HRS-212",
        f"{APP}@app.task('job', default_unhandled_error_code='TASK_CANCELLED')\n{TASK}",
        "TASK_CANCELLED",
        "@app",
    ),
    Wrong("HRS-300", f"{APP}app.tasks['unknown']\n", "unknown", "app.tasks"),
    Wrong("HRS-301", f"{APP}@app.task('job')\n{TASK}@app.task('job')\n{TASK}", "already", "@app"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.said[:20]}")
def test_a_wrong_app_is_refused_with_code_place_and_cure(case: Wrong, tmp_path: Path) -> None:
    project = write_project(tmp_path, {"queue_app.py": case.source})

    done = run_horsies(project, "check", "queue_app")

    assert done.returncode == 1
    assert done.stdout == ""
    assert f"error[{case.code}]" in done.stderr
    assert case.said in done.stderr
    assert "= help:" in done.stderr
    assert "Traceback" not in done.stderr
    place = re.search(r"--> (.*queue_app\.py):(\d+)", done.stderr)
    if case.place:
        assert place, done.stderr
        assert case.source.splitlines()[int(place[2]) - 1].startswith(case.place)
    else:
        assert "-->" not in done.stderr, "no place is better than a wrong one"


@pytest.mark.parametrize("code", ["0", "'no settings'"])
def test_a_module_that_exits_is_no_right_app(tmp_path: Path, code: str) -> None:
    project = write_project(tmp_path, {"shop.py": f"import sys\nsys.exit({code})\n"})

    done = run_horsies(project, "check", "shop:app")

    assert done.returncode == 1
    assert "SystemExit" in done.stderr


def test_a_command_called_through_a_link_is_no_place_of_the_users_code(tmp_path: Path) -> None:
    """As pipx and uv install it."""
    project = write_project(tmp_path, {"queue_app.py": "nothing = 1\n"})
    link = tmp_path / "horsies"
    link.symlink_to(COMMAND)

    done = subprocess.run(
        [link, "check", "queue_app"], cwd=project, capture_output=True, text=True, check=False
    )

    assert "error[HRS-206]" in done.stderr
    assert "-->" not in done.stderr


def test_several_broken_files_are_reported_at_once(tmp_path: Path) -> None:
    files = {
        "queue_app.py": f"{APP}app.discover_tasks(['one', 'two', 'three.py', 'four', 'fine'])\n",
        "one.py": "import not_there\n",
        "two.py": "1 / 0\n",
        "four.py": f"{OTHER}@app.task('job', timeout_ms=1)\n{TASK}",
        "fine.py": f"{OTHER}@app.task('fine')\n{TASK}",
    }

    done = run_horsies(write_project(tmp_path, files), "check", "queue_app")

    assert done.returncode == 1
    assert re.findall(r"error\[(HRS-\d+)\]", done.stderr) == [
        "HRS-206", "HRS-210", "HRS-206", "HRS-102",
    ]  # fmt: skip
    assert "aborting due to 4 previous errors" in done.stderr
    assert "task module not found: three.py" in done.stderr


def test_every_mistake_of_every_module_is_shown_in_one_run(tmp_path: Path) -> None:
    files = {
        "queue_app.py": f"{APP}@app.task('a', timeout=1)\n{TASK}"
        f"@app.task\n{TASK}@app.task()\n{TASK}app.discover_tasks(['one', 'two'])\n",
        "one.py": f"{OTHER}@app.task('b')\ndef b(): ...\n"
        "@app.task('c')\ndef c() -> int: ...\nb.send()\n",
        "two.py": f"{OTHER}from horsies import *\n"
        "wrong = RetryPolicy.fixed([1], auto_retry_for=[ValueError])\n"
        "policy = RetryPolicy.fixed([1], auto_retry_for=['WAIT_TIMEOUT'])\n"
        f"@app.task('d', retry_policy=policy)\n{TASK}"
        "@app.task('e')\ndef e(x: open) -> TaskResult[int, TaskError]: ...\n",
    }

    done = run_horsies(write_project(tmp_path, files), "check", "queue_app")

    assert done.returncode == 1
    assert re.findall(r"error\[(HRS-\d+)\]", done.stderr) == [
        "HRS-102", "HRS-102", "HRS-102", "HRS-100", "HRS-101", "HRS-102", "HRS-102", "HRS-105",
    ]  # fmt: skip
    assert "remove it, or write timeout_ms" in done.stderr
    assert done.stderr.count('write @app.task("job")') == 2
    assert "write retry_on=[ValueError]" in done.stderr
    assert "names codes that are never retried: WAIT_TIMEOUT" in done.stderr
    assert "aborting due to 8 previous errors" in done.stderr


def test_one_name_in_two_files_names_both_places(tmp_path: Path) -> None:
    files = {
        "queue_app.py": f"{APP}app.discover_tasks(['one', 'two'])\n",
        "one.py": f"{OTHER}@app.task('job')\n{TASK}",
        "two.py": f"{OTHER}@app.task('job')\n{TASK}",
    }

    done = run_horsies(write_project(tmp_path, files), "check", "queue_app")

    assert done.returncode == 1
    assert "error[HRS-301]" in done.stderr
    assert re.search(r"--> .*two\.py:2", done.stderr)
    assert re.search(r"first defined at .*one\.py:2", done.stderr)


def test_live_check_names_the_database_that_does_not_answer(tmp_path: Path) -> None:
    project = write_project(tmp_path, {"queue_app.py": APP})

    done = run_horsies(project, "check", "--live", "queue_app")

    assert done.returncode == 1
    assert "error[HRS-203]" in done.stderr
    assert "127.0.0.1" in done.stderr
    assert "= help:" in done.stderr


def test_a_right_app_passes_also_live(tmp_path: Path, database_url: str) -> None:
    source = f"from horsies import *\napp = Horsies()\n@app.task('job')\n{TASK}"
    project = write_project(tmp_path, {"queue_app.py": source})

    done = run_horsies(
        project, "check", "--live", "queue_app.py:app", HORSIES_DATABASE_URL=database_url
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["ok: all validations passed", "1 task(s) registered"]


def test_a_worker_refuses_to_start_with_the_same_errors(tmp_path: Path) -> None:
    files = {"queue_app.py": f"{APP}app.discover_tasks(['two'])\n", "two.py": "1 / 0\n"}

    done = run_horsies(write_project(tmp_path, files), "worker", "queue_app")

    assert done.returncode == 1
    assert "error[HRS-210]" in done.stderr
    assert "ZeroDivisionError" in done.stderr


def test_a_worker_refuses_annotations_that_it_cannot_use(tmp_path: Path) -> None:
    source = f"{APP}@app.task('job')\ndef job(x: 'Order') -> TaskResult[int, TaskError]: ...\n"

    done = run_horsies(write_project(tmp_path, {"queue_app.py": source}), "worker", "queue_app")

    assert done.returncode == 1
    assert "error[HRS-105]: task 'job': parameter 'x'" in done.stderr
    assert "the name 'Order' is not defined in queue_app" in done.stderr


@pytest.mark.parametrize("command", ["check", "worker"])
def test_an_app_without_tasks_is_refused(command: str, tmp_path: Path) -> None:
    files = {"queue_app.py": f"{APP}app.discover_tasks(['other'])\n", "other.py": ""}

    done = run_horsies(write_project(tmp_path, files), command, "queue_app")

    assert done.returncode == 1
    assert "error[HRS-300]: this app has no tasks" in done.stderr
    assert "discover_tasks names other" in done.stderr


def test_a_module_that_cannot_be_imported_is_looked_for_from_here(tmp_path: Path) -> None:
    done = run_horsies(tmp_path, "check", "not_there:app")

    assert done.returncode == 1
    assert "the module must be importable from the working directory" in done.stderr
    assert "name the file" not in done.stderr


def test_a_file_in_a_directory_that_is_no_project_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "shop.py").touch()

    done = run_horsies(tmp_path, "check", "shop:app")

    assert done.returncode == 1
    assert "or name the file that is here: shop.py" in done.stderr


@pytest.mark.parametrize(
    ("locator", "said"),
    [
        pytest.param(
            "queue", f"it was loaded from {queue.__file__}", id="hidden by another module"
        ),
        pytest.param("queue.app", "if app is an app in queue, write queue:app", id="dot"),
    ],
)
def test_a_name_that_means_another_module_says_so(tmp_path: Path, locator: str, said: str) -> None:
    write_project(tmp_path, {"queue.py": APP})

    done = run_horsies(tmp_path, "check", locator)

    assert done.returncode == 1
    assert said in done.stderr


def test_neither_url_nor_embedded_server_names_both_ways_out(tmp_path: Path) -> None:
    project = write_project(tmp_path, {"queue_app.py": "from horsies import *\napp = Horsies()\n"})

    done = run_horsies(project, "check", "queue_app")

    assert done.returncode == 1
    assert "error[HRS-203]" in done.stderr
    assert "HORSIES_DATABASE_URL" in done.stderr
    assert "HORSIES_EMBEDDED=0 forbids" in done.stderr
    assert "horsies[embedded]" in done.stderr


def test_a_child_that_cannot_load_the_app_says_so_with_a_code_of_its_own() -> None:
    with pytest.raises(ConfigurationError, match="no_such_module") as refusal:
        child_main._load_app("no_such_module:app")

    assert refusal.value.code is ErrorCode.WORKER_INVALID_LOCATOR
