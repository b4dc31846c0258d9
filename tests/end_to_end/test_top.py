"""`horsies top` as a process: one snapshot for scripts, and clear answers where it cannot run."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from support.command import COMMAND, run_horsies, write_project
from support.database import Database
from support.eventually import eventually
from support.scenes import plant_shop


def test_once_prints_a_snapshot_of_the_database_in_the_env_file(
    tmp_path: Path, db: Database, database_url: str
) -> None:
    plant_shop(db)
    project = write_project(tmp_path, {".env": f'HORSIES_DATABASE_URL="{database_url}"\n'})

    printed = run_horsies(project, "top", "--once")
    by_alias = run_horsies(project, "tui", "-d", database_url, "--once")

    assert (printed.returncode, printed.stderr) == (0, "")
    assert "COMPLETED        36" in printed.stdout
    assert "FAILED            4" in printed.stdout
    assert "Workflows\n" in printed.stdout
    assert by_alias.stdout.count("\n") == printed.stdout.count("\n")


def test_once_fails_when_the_database_is_away(tmp_path: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/nothing"

    failed = run_horsies(tmp_path, "top", "-d", url, "--once")

    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("Error: ")


def test_bad_input_is_answered(tmp_path: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/nothing"
    both = run_horsies(tmp_path, "top", "shop:app", "-d", url)
    rate = run_horsies(tmp_path, "top", "-d", url, "--tick-rate", "0")
    piped = run_horsies(tmp_path, "top", "-d", url)
    program = (
        "import sys; sys.modules['textual'] = None; from horsies.cli.main import run; "
        f"sys.argv = ['horsies', 'top', '-d', '{url}']; sys.exit(run())"
    )
    without = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert (both.returncode, rate.returncode) == (2, 2)
    assert "give MODULE or --database-url, not both" in both.stderr
    assert "0.1<=x<=60" in rate.stderr
    assert (piped.returncode, without.returncode) == (1, 1)
    assert "horsies top needs a terminal; --once prints a snapshot" in piped.stderr
    assert "pip install 'horsies[tui]'" in without.stderr


def test_it_runs_in_a_real_terminal_until_q(
    tmp_path: Path, db: Database, database_url: str
) -> None:
    plant_shop(db)
    terminal, program = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    viewer = subprocess.Popen(
        [COMMAND, "top", "-d", database_url, "--frame-rate", "10", "--tick-rate", "2"],
        stdin=program,
        stdout=program,
        stderr=program,
        env=environment,
        cwd=tmp_path,
    )
    os.close(program)
    seen = bytearray()

    def shows(text: bytes) -> bool:
        seen.extend(os.read(terminal, 65_536))
        return text in seen

    eventually(lambda: shows(b"Completed"), within=30)
    os.write(terminal, b"q")
    try:
        while os.read(terminal, 65_536):
            pass
    except OSError:  # the other side is closed
        pass

    assert viewer.wait(20) == 0
    os.close(terminal)
