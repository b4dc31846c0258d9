"""The quickstart, followed word for word in a clean environment: each command, each output."""

import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from horsies import embedded_postgres
from support.clean_environment import INSTALLED, started, typed
from support.cluster import make_directory, remove_directory

PAGE = (Path(__file__).parents[2] / "docs" / "quickstart.md").read_text()
# What is said, then a block: of a shell, of Python, or of what is shown.
STEPS = re.findall(r"(.*?)^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
INLINE = re.findall(r"`(horsies [^`]+)`", PAGE)


class Follower:
    """Somebody who does what the page says, in the order of the page, with two terminals."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.worker: subprocess.Popen[str] | None = None
        self.logs = ""
        self.shown = ""

    def type(self, line: str) -> None:
        if line.startswith("pip install "):
            assert line.split("'")[1] in INSTALLED
        elif line.startswith("cd "):
            self.directory /= line.removeprefix("cd ")
        elif line.startswith("horsies worker "):
            self.stop_worker()
            self.worker = started(self.directory, line, HORSIES_EMBEDDED="1")
        else:
            done = typed(self.directory, line, HORSIES_EMBEDDED="1")
            assert done.returncode == 0, done.stderr
            self.shown = done.stdout

    def save(self, name: str, block: str) -> None:
        with (self.directory / name).open("a") as file:
            file.write(block)

    def stop_worker(self) -> None:
        """Ctrl-C."""
        if self.worker is not None:
            self.worker.send_signal(signal.SIGINT)
            assert self.worker.wait(30) == 0
            self.logs += (self.directory / "log.txt").read_text()


@pytest.fixture
def follower() -> Iterator[Follower]:
    directory = make_directory()
    follower = Follower(directory)
    yield follower
    if follower.worker is not None:
        follower.worker.kill()
        follower.worker.wait()
    embedded_postgres.stop(follower.directory)
    remove_directory(directory)


@pytest.mark.slow
def test_the_quickstart_is_followed_word_for_word(follower: Follower) -> None:
    outputs: list[tuple[str, str]] = []
    name = ""

    for words, kind, block in STEPS:
        if kind == "text":
            outputs.append((follower.shown, block))
        elif kind == "python":
            name = "".join(re.findall(r"Save this as `(\S+)`", words)) or name
            follower.save(name, block)
        else:
            for line in block.splitlines():
                follower.type(line)
    follower.type(f"python -W error {name}")
    follower.stop_worker()

    assert len(outputs) == 2
    for shown, quoted in outputs:
        assert shown == quoted
    for ended in ("count_words", "greet", "divide"):
        assert f"horsies.tasks: {ended} " in follower.logs
    assert "(attempt 3, queue default): DIVIDED_BY_ZERO: 1 / 0" in follower.logs


@pytest.mark.slow
def test_commands_between_the_lines_of_the_quickstart_run(
    tmp_path: Path, database_url: str
) -> None:
    (shop,) = [block for _, _, block in STEPS if block.startswith("# shop.py\n")]
    (tmp_path / "shop.py").write_text(shop)
    (tmp_path / "pyproject.toml").touch()

    assert INLINE
    for line in INLINE:
        ends = " --burst" if " worker " in line else ""
        done = typed(tmp_path, line + ends, HORSIES_DATABASE_URL=database_url)
        assert done.returncode == 0, f"{line}: {done.stderr}"
