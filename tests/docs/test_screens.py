"""The screens in the guides are what the commands print, on a scene with a fixed clock.

`HORSIES_WRITE_SCREENS=1 pytest tests/docs/test_screens.py` writes them anew.
"""

import os
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from horsies.cli.main import horsies
from support.database import NOW, Database, connect
from support.scenes import plant_shop

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "operate.md"
SCREEN = re.compile(r"^```console\n\$ (horsies .*)\n((?:.*\n)*?)```$", re.MULTILINE)


@pytest.fixture
def scene(
    server_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    """A shop at noon; every session of its database has the same clock."""
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"alter database \"{name}\" set horsies.now = '{NOW.isoformat()}'")
    for variable, value in {"TZ": "UTC", "COLUMNS": "118", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("HORSIES_DATABASE_URL", database_url)
    time.tzset()
    db = connect(database_url)
    plant_shop(db)
    yield db
    db.connection.close()
    monkeypatch.undo()
    time.tzset()


def run(line: str) -> str:
    result = CliRunner().invoke(horsies, shlex.split(line)[1:], prog_name="horsies")
    return "".join(f"{text.rstrip()}\n" for text in result.output.splitlines())


def test_every_screen_of_the_guide_is_what_its_command_prints(scene: Database) -> None:
    text = GUIDE.read_text()

    printed = {line: run(line) for line, _ in SCREEN.findall(text)}
    if os.environ.get("HORSIES_WRITE_SCREENS") == "1":
        text = SCREEN.sub(lambda m: f"```console\n$ {m[1]}\n{printed[m[1]]}```", text)
        GUIDE.write_text(text)

    assert printed
    assert dict(SCREEN.findall(text)) == printed
