"""Finding and importing task modules."""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from horsies.codes import ErrorCode
from horsies.tasks.discovery import (
    expand_module_globs,
    import_entry,
    import_problems,
    import_task_modules,
)


@pytest.fixture(autouse=True)
def _clean_imports() -> Iterator[None]:
    modules, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    sys.path[:] = path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a.py", "sub/b.py", "sub/test_b.py", "sub/b_test.py", "conftest.py", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("LOADED = []\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path.resolve()


@pytest.mark.parametrize(
    ("patterns", "exclude", "expected"),
    [
        (["*.py"], None, ["a.py"]),
        (["**/*.py"], None, ["a.py", "sub/b.py"]),
        (["**/*.py", "a.py", "./a.py"], None, ["a.py", "sub/b.py"]),
        (["conftest.py", "sub/test_b.py"], None, []),
        (["**/*.py"], [], ["a.py", "sub/b.py"]),
        (["*.py"], ["a.py"], ["conftest.py"]),
        (["missing.py", "*.txt", "sub/"], None, []),
    ],
)
def test_globs_become_real_files_each_once(
    project: Path, patterns: list[str], exclude: list[str] | None, expected: list[str]
) -> None:
    assert expand_module_globs(patterns, exclude) == [str(project / name) for name in expected]


def test_dotted_names_pass_through(project: Path) -> None:
    assert expand_module_globs(["shop.tasks", "a.py"]) == ["shop.tasks", str(project / "a.py")]


def test_a_file_is_loaded_once_under_a_stable_name(project: Path) -> None:
    first = import_entry("sub/b.py")
    again = import_entry(str(project / "sub" / ".." / "sub" / "b.py"))

    assert again is first
    assert sys.modules[first.__name__] is first
    assert str(project / "sub") in sys.path
    del sys.modules[first.__name__]
    assert import_entry("sub/b.py").__name__ == first.__name__


def test_a_file_already_imported_by_name_is_not_loaded_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(project)

    by_name = import_entry("a")

    assert import_entry("a.py") is by_name


def test_a_missing_file_is_skipped_with_a_warning(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        imported = import_task_modules(["a.py", "gone.py", "json"])

    assert imported == ["a.py", "json"]
    assert "gone.py" in caplog.text


def test_a_module_that_misses_a_file_itself_is_not_skipped(project: Path) -> None:
    (project / "a.py").write_text("open('gone')\n")

    with pytest.raises(FileNotFoundError):
        import_task_modules(["a.py"])


def test_a_failed_import_leaves_no_module_behind(project: Path) -> None:
    (project / "a.py").write_text("raise RuntimeError('x')\n")
    before = set(sys.modules)

    with pytest.raises(RuntimeError):
        import_entry("a.py")

    assert set(sys.modules) == before


@pytest.mark.parametrize(
    ("source", "entry", "code", "text"),
    [
        ("", "gone.py", "HRS-206", "task module not found"),
        ("", "no_such_module_anywhere", "HRS-206", "failed to import module"),
        ("import no_such_module_anywhere", "a.py", "HRS-206", "failed to import module"),
        ("1 / 0", "a.py", "HRS-210", "error while importing module"),
        ("def (", "a.py", "HRS-210", "error while importing module"),
    ],
)
def test_import_problems_have_their_codes(
    project: Path, source: str, entry: str, code: str, text: str
) -> None:
    (project / "a.py").write_text(source)

    (error,) = import_problems(entry)

    assert error.code == ErrorCode(code)
    assert text in error.message
    if code == "HRS-210":
        assert "Error" in error.notes[0]
        assert "module-level code" in (error.help_text or "")


def test_our_own_errors_pass_unchanged_and_flattened(project: Path) -> None:
    (project / "a.py").write_text(
        "from horsies.errors import ConfigurationError\nraise ConfigurationError('mine')\n"
    )
    (project / "sub/b.py").write_text(
        "from horsies.config import RecoveryConfig\n"
        "RecoveryConfig(running_stale_threshold_ms=1000, claimed_stale_threshold_ms=1000)\n"
    )

    assert [error.message for error in import_problems("a.py")] == ["mine"]
    assert len(import_problems("sub/b.py")) == 2


def test_a_good_module_has_no_problems(project: Path) -> None:
    assert import_problems("a.py") == []


def test_a_path_is_the_module_that_others_import(project: Path) -> None:
    (project / "app_of_path.py").write_text("import tasks_of_path\nAPP = object()\n")
    (project / "tasks_of_path.py").write_text("import app_of_path\n")

    module = import_entry("app_of_path.py")

    assert module.__name__ == "app_of_path"
    assert sys.modules["tasks_of_path"].app_of_path is module


def test_a_path_in_a_package_keeps_its_relative_imports(project: Path) -> None:
    package = project / "shop_of_path"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "queue.py").write_text("APP = object()\n")
    (package / "tasks.py").write_text("from .queue import APP\n")

    tasks = import_entry("shop_of_path/tasks.py")
    queue = import_entry("shop_of_path/queue.py")

    assert tasks.__name__ == "shop_of_path.tasks"
    assert queue.__name__ == "shop_of_path.queue"
    assert tasks.APP is queue.APP


def test_a_path_whose_package_imports_it_is_loaded_once(project: Path) -> None:
    package = project / "eager_package"
    package.mkdir()
    (package / "__init__.py").write_text("from .queue import APP\n")
    (package / "queue.py").write_text("APP = object()\n")

    queue = import_entry("eager_package/queue.py")

    assert sys.modules["eager_package"].APP is queue.APP


def test_a_path_below_the_working_directory_has_both_its_names(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(project)
    (project / "sub" / "app_in_sub.py").write_text("")

    module = import_entry("sub/app_in_sub.py")

    assert module.__name__ == "sub.app_in_sub"
    assert import_entry("app_in_sub") is module
    assert import_entry("sub.app_in_sub") is module


def test_a_file_with_the_name_of_a_known_module_hides_nothing(project: Path) -> None:
    (project / "queue.py").write_text("MINE = True\n")

    module = import_entry("queue.py")

    assert module.MINE
    assert not hasattr(import_entry("queue"), "MINE")
