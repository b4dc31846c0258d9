"""The examples in docstrings run and print what they say."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
EXAMPLE = re.compile(r"^ *>>> (?!.*doctest: \+SKIP)", re.MULTILINE)
WITH_EXAMPLES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in sorted(SOURCE.rglob("*.py"))
    if EXAMPLE.search(path.read_text())
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_doc_examples_are_true(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name))

    assert outcome.attempted > 0
    assert outcome.failed == 0
