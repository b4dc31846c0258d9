"""One test for a rule that every file must keep: a row per file would cost more than the look."""

from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def assert_each(paths: Iterable[Path], check: Callable[[Path], None]) -> None:
    """Look at every file, and fail with all that break the rule."""
    looked_at = 0
    broken: dict[str, str] = {}
    for path in paths:
        looked_at += 1
        try:
            check(path)
        except AssertionError as error:
            broken[path.relative_to(ROOT).as_posix()] = str(error)
    assert looked_at, "no file to look at"
    assert broken == {}, "\n".join(f"{path}: {why}" for path, why in broken.items())
