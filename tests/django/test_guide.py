"""The guide's five minutes run as printed: settings, tasks, migrate, enqueue, worker."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from support import cluster
from support.django_project.settings import database

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "django.md"


@pytest.mark.slow
def test_the_guide_runs(tmp_path: Path, server: cluster.Server) -> None:
    blocks = re.findall(
        r"^```python\n# (\S+)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    for name, text in blocks:
        if find_spec("django.tasks") is not None:
            text = text.replace('    "django_tasks",  # only on Django 5.2\n', "")
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with server.temporary_database() as url:
        found = database(url)
        env = {
            "PATH": "/usr/bin:/bin",
            "DJANGO_SETTINGS_MODULE": "settings",
            "PGDATABASE": found["NAME"],
            "PGUSER": found["USER"],
            "PGHOST": found["HOST"],
            "PGPORT": found["PORT"],
        }
        code = "from pathlib import Path; exec(Path('script.py').read_text())"
        done = [
            subprocess.run(
                [sys.executable, "-m", "django", *words],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            for words in (
                ("migrate", "-v0"),
                ("shell", "-c", code),
                ("horsies_worker", "--batch", "--processes", "1"),
            )
        ]
        with psycopg.connect(url) as connection:
            rows = connection.execute("select status, result from horsies_tasks").fetchall()

    assert [one.returncode for one in done] == [0] * 3, [one.stderr for one in done]
    assert [status for status, _ in rows] == ["COMPLETED"]
    assert "receipt 42" in rows[0][1]
