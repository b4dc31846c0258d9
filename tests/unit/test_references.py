"""Comments and docstrings name only what can be opened in this repository."""

import ast
import inspect
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.each import assert_each

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "horsies"
SQL = SOURCE / "database" / "sql"
CONTRACT = ROOT / "docs" / "contract"

SOURCE_FILES = sorted([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.sql")])
FILES = [
    *SOURCE_FILES,
    *sorted((ROOT / "tests").rglob("*.py")),
    *sorted((ROOT / "benchmarks").glob("*.py")),  # not those of the peers' environment
    *sorted((ROOT / "benchmarks" / "peers").glob("*.py")),
]
SQL_FUNCTIONS = sorted((SQL / "functions").rglob("*.sql"))
# Pages that speak of the code as it is; decisions also tell how it was.
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "concepts").glob("*.md")),
]

PATH = re.compile(r"(?<![\w./<*-])((?:[\w.-]+/)*[\w-]+\.(?:py|sql|md))\b(?!:\w)")
TEST = re.compile(r"([\w/]+\.py)::(\w+)")
SECTION = re.compile(r"(?:([\w/]+\.md) )?§(\d+(?:\.\d+)?)")
DATABASE_NAME = re.compile(r"\bhorsies_\w*[a-z0-9]\b(?![*…])")
DECISION = re.compile(r"decisions? (\d{4})\b")
TRANSITION = re.compile(r"\bT(\d{1,2})\b")
STATEMENT = re.compile(r"\bS(\d{1,3})\b")
CALLER = re.compile(r"^-- Callers?: (.*)$", re.MULTILINE)

# Files of a user's own project, in examples; files a test writes for itself.
EXAMPLES = {
    "app.py", "conftest.py", "count.py", "daily.py", "jobs.py", "pyproject.toml", "queue.py",
    "script.py", "setup.py", "shop.py", "shop/queue.py", "tasks.py", "test_shop.py",
}  # fmt: skip


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tracked() -> frozenset[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout.split("\n")  # fmt: skip
    found = [name for name in listed if (ROOT / name).is_file()]
    return frozenset(found or [name_of(path) for path in ROOT.rglob("*.*") if path.is_file()])


@cache
def prose(path: Path) -> str:
    """All comments and docstrings of a file."""
    text = path.read_text()
    if path.suffix == ".sql":
        return "\n".join(re.findall(r"--.*", text))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [
        token.string.partition("noqa:")[0] for token in tokens if token.type == tokenize.COMMENT
    ]
    return "\n".join([*comments, *docstrings(ast.parse(text))])


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


@cache
def database_names() -> frozenset[str]:
    """The functions, tables, columns and channels that statements or Python texts name."""
    found: set[str] = set()
    for path in SOURCE_FILES:
        text = path.read_text()
        if path.suffix == ".sql":
            found.update(DATABASE_NAME.findall(re.sub(r"--.*", "", text)))
            continue
        tree = ast.parse(text)
        told = set(docstrings(tree))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if inspect.cleandoc(node.value) not in told:
                found.update(DATABASE_NAME.findall(node.value))
    return frozenset(found)


def has_test(file: str, name: str) -> bool:
    return any(
        re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)
        for path in tracked()
        if path == file or path.endswith(f"/{file}")
    )


def exists(reference: str) -> bool:
    return reference in EXAMPLES or any(
        name == reference or name.endswith(f"/{reference}") for name in tracked()
    )


@cache
def headings(page: str) -> frozenset[str]:
    """The numbers of a page's sections; the page is named from the root."""
    if not (ROOT / page).is_file():
        return frozenset()
    text = (ROOT / page).read_text()
    return frozenset(re.findall(r"^#+ (\d+(?:\.\d+)?)\.? ", text, re.MULTILINE))


@cache
def numbered(letter: str) -> frozenset[int]:
    text = (CONTRACT / "lifecycle.md").read_text()
    return frozenset(int(n) for n in re.findall(rf"^\| {letter}(\d+) \|", text, re.MULTILINE))


def check_files(path: Path) -> None:
    assert [found for found in PATH.findall(prose(path)) if not exists(found)] == []


def test_every_file_named_in_a_comment_exists() -> None:
    assert_each(FILES, check_files)


def check_rules(path: Path) -> None:
    text = prose(path)
    sections = [f"{page} §{at}" for page, at in SECTION.findall(text) if at not in headings(page)]
    decisions = [n for n in DECISION.findall(text) if not list((ROOT / "docs").rglob(f"{n}-*.md"))]
    transitions = set(map(int, TRANSITION.findall(text))) - numbered("T")
    statements = set(map(int, STATEMENT.findall(text))) - numbered("S")

    assert (sections, decisions) == ([], [])
    assert (transitions, statements) == (set(), set())


def test_every_section_decision_and_rule_named_in_a_comment_exists() -> None:
    assert_each(FILES, check_rules)


def check_names(path: Path) -> None:
    text = prose(path)
    code = path.read_text()
    commands = {Path(file).stem for file in tracked() if "/management/commands/" in file}
    names = set(DATABASE_NAME.findall(text)) - database_names() - commands
    # A test may name what it makes for itself.
    unknown = [name for name in names if code.count(name) == text.count(name)]

    assert [found for found in TEST.findall(text) if not has_test(*found)] == []
    assert unknown == []


def test_every_test_and_database_name_in_a_comment_exists() -> None:
    assert_each(FILES, check_names)


def check_page(path: Path) -> None:
    marked = "\n".join(re.findall(r"`([^`\n]+)`", path.read_text()))
    files = [found for found in PATH.findall(marked) if "NNNN" not in found]

    assert [found for found in files if not exists(found)] == []
    assert [found for found in TEST.findall(marked) if not has_test(*found)] == []


def test_every_file_and_test_named_in_a_page_exists() -> None:
    assert_each(PAGES, check_page)


@pytest.mark.parametrize(
    "comment",
    [
        "see worker/nothing.py",
        "see docs/contract/nothing.md §1",
        "see docs/contract/lifecycle.md §99",
        "see lifecycle.md §5.2",  # from the root, so that it can be opened
        "see §5.2",
        "see S160",
        "see T18",
        "see decision 0099",
        "see tests/unit/test_references.py::test_nothing",
        "see horsies_nothing",
    ],
)
@pytest.mark.parametrize("suffix", [".py", ".sql"])
def test_a_comment_that_names_what_does_not_exist_is_found(
    comment: str, suffix: str, tmp_path: Path
) -> None:
    file = tmp_path / f"file{suffix}"
    file.write_text(f"{'#' if suffix == '.py' else '--'} {comment}\n")

    found = 0
    for check in (check_files, check_rules, check_names):
        try:
            check(file)
        except AssertionError:
            found += 1

    assert found


def test_the_contract_numbers_its_rules_without_a_gap() -> None:
    assert numbered("T") == frozenset(range(1, 18))
    assert numbered("S") == frozenset(range(1, 160))


def check_callers(path: Path) -> None:
    """A Python caller names the statement; a SQL caller names the function."""
    text = path.read_text()
    # Python names a statement without the version of its function.
    own = re.findall(r"(?:function|procedure) horsies_(\w+)\(", text)
    statements = [re.sub(r"_v\d+$", "", name) for name in own]
    for named in CALLER.findall(text):
        for python in re.findall(r"[\w/]+\.py", named):
            caller = (SOURCE / python).read_text()
            assert any(re.search(rf"\b{name}\b", caller) for name in statements), python
        for function in re.findall(r"horsies_(\w+)", re.split(r"Locks:|, under|\. ", named)[0]):
            (caller_file,) = [
                other
                for other in SQL_FUNCTIONS
                if re.search(rf"(?:function|procedure) horsies_{function}\(", other.read_text())
            ]
            assert any(f"horsies_{name}(" in caller_file.read_text() for name in own), function


def test_every_caller_of_a_sql_function_calls_it() -> None:
    assert_each(SQL_FUNCTIONS, check_callers)
