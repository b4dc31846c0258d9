"""Every Python example of the guides and the README runs as printed, against a real worker."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from horsies import embedded_postgres
from support.cluster import make_directory, remove_directory
from support.programs import run_python, worker

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# The contract also shows what is not built yet; decisions show no programs.
NOT_RUN = (DOCS / "contract", DOCS / "decisions")


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def guides_with_examples() -> list[Path]:
    pages = sorted(page for page in DOCS.rglob("*.md") if page.parent not in NOT_RUN)
    pages.remove(DOCS / "how-to" / "django.md")  # tests/django/test_guide.py runs it
    return [page for page in pages if blocks(page)]


def write_program(page: Path, directory: Path) -> None:
    """Blocks that open with a file's name make up that file; the others make up script.py."""
    (directory / "pyproject.toml").touch()
    for block in blocks(page):
        name = re.match(r"# (\w+\.py)\n", block)
        with (directory / (name[1] if name else "script.py")).open("a") as file:
            file.write(block + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("page", guides_with_examples(), ids=lambda page: str(page.stem))
def test_guide_examples_run(page: Path, tmp_path: Path, database_url: str) -> None:
    write_program(page, tmp_path)

    with worker(tmp_path, "shop:app", HORSIES_DATABASE_URL=database_url):
        finished = run_python(tmp_path, "script.py", HORSIES_DATABASE_URL=database_url)

    assert finished.returncode == 0, finished.stderr


@pytest.fixture
def project() -> Iterator[Path]:
    """A directory that the user of an embedded server can reach."""
    directory = make_directory()
    yield directory
    embedded_postgres.stop(directory)
    remove_directory(directory)


@pytest.mark.slow
def test_the_readme_example_prints_what_it_says(project: Path) -> None:
    example, _ = blocks(ROOT / "README.md")
    (project / "shop.py").write_text(example)

    with worker(project, "shop.py", HORSIES_EMBEDDED="1"):
        finished = run_python(project, "shop.py")

    assert len(example.splitlines()) <= 20
    assert finished.stdout == "invoice-42.pdf\nNO_SUCH_ORDER\n", finished.stderr


@pytest.mark.slow
def test_the_readme_workflow_prints_what_it_says(project: Path) -> None:
    _, example = blocks(ROOT / "README.md")
    (project / "daily.py").write_text(example)

    with worker(project, "daily.py", HORSIES_EMBEDDED="1"):
        finished = run_python(project, "daily.py")

    assert finished.stdout == "3 orders, 237.0 EUR\n", finished.stderr
