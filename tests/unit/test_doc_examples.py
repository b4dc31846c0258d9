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
    module = importlib.import_module(name)
    # Public exceptions say that they are of `horsies`; doctest would leave them out.
    text = (SOURCE / name.replace(".", "/")).with_suffix(".py").read_text()
    moved = [
        value
        for value in vars(module).values()
        if getattr(value, "__module__", None) == "horsies" and f"class {value.__name__}(" in text
    ]
    runner = doctest.DocTestRunner()

    for found in (module, *moved):
        for example in doctest.DocTestFinder().find(found, module=module):
            runner.run(example)

    assert runner.tries > 0
    assert runner.failures == 0
