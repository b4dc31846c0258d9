"""`horsies init` and `horsies get-docs`: what they write, and that nothing is overwritten.

tests/docs/test_quickstart.py runs the written project.
"""

from pathlib import Path

import pytest

from support.command import run_horsies


def test_written_project_is_the_same_app_by_its_path(tmp_path: Path, database_url: str) -> None:
    run_horsies(tmp_path, "init")

    checked = run_horsies(tmp_path, "check", "app.py", HORSIES_DATABASE_URL=database_url)

    assert "3 task(s) registered" in checked.stdout, checked.stderr


def test_printed_commands_name_what_was_written(tmp_path: Path) -> None:
    elsewhere = run_horsies(tmp_path, "init", "my_shop").stdout
    here = run_horsies(tmp_path, "init").stdout

    for line in ("cd my_shop", "horsies worker app:app", "python send.py"):
        assert line in elsewhere
    assert "cd " not in here
    assert (tmp_path / "app.py").is_file()
    assert 'name = "my-shop"' in (tmp_path / "my_shop" / "pyproject.toml").read_text()


def test_written_project_passes_check(tmp_path: Path, database_url: str) -> None:
    run_horsies(tmp_path, "init")

    checked = run_horsies(tmp_path, "check", "app:app", HORSIES_DATABASE_URL=database_url)

    assert "3 task(s) registered" in checked.stdout, checked.stderr


def test_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("mine")

    refused = run_horsies(tmp_path, "init")

    assert refused.returncode == 1
    assert "tasks.py" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tasks.py"]
    assert (tmp_path / "tasks.py").read_text() == "mine"


@pytest.mark.parametrize("command", [["init"], ["get-docs", "--output"]], ids=["init", "get-docs"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "file").touch()

    refused = run_horsies(tmp_path, *command, "file/project")

    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "file/project" in refused.stderr


def test_get_docs_writes_the_pages_and_replaces_its_own(tmp_path: Path) -> None:
    run_horsies(tmp_path, "get-docs")
    stale = tmp_path / ".horsies-docs" / "stale.md"
    stale.touch()

    again = run_horsies(tmp_path, "get-docs")

    assert again.returncode == 0, again.stderr
    assert (tmp_path / ".horsies-docs" / "quickstart.md").is_file()
    assert not stale.exists()


def test_get_docs_leaves_other_directories_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "mine.md").write_text("mine")

    refused = run_horsies(tmp_path, "get-docs", "--output", "notes")

    assert refused.returncode == 1
    assert [path.name for path in notes.iterdir()] == ["mine.md"]
