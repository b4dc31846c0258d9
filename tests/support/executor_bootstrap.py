"""The fork server's program in the executor tests; its behaviour is chosen by a file.

Arguments: a folder. `load_fails` or `hook_fails` in it make just that fail; each hook run is noted.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from horsies.executors.fork_server_main import serve
from support.executor_tasks import TestDefinitions, note

folder = Path(sys.argv[1])


def hook() -> None:
    note(str(folder / "hook_runs"))
    if (folder / "hook_fails").exists():
        raise RuntimeError("the stable door is locked")


def load() -> TestDefinitions:
    if (folder / "load_fails").exists():
        raise RuntimeError("no such stable")
    return TestDefinitions(hook)


serve(load)
