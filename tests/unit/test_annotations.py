"""Annotations that cannot be used are refused: never silently unchecked."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from horsies import Horsies, TaskDefinitionError, TaskError, TaskResult
from horsies.codes import ErrorCode, TaskSendErrorCode
from support.apps import bad, make_app

URL = "postgresql://nobody@127.0.0.1:1/nowhere"


class Plain:
    """A class that pydantic knows nothing of."""


@pytest.fixture
def app() -> Horsies:
    return make_app(URL)


@pytest.fixture
def load(tmp_path: Path, app: Horsies) -> Iterator[Any]:
    """Run the source of a module that defines tasks on the app."""

    def load_source(source: str) -> ModuleType:
        (tmp_path / "annotated_tasks.py").write_text(source)
        module = ModuleType("annotated_tasks")
        module.__file__ = str(tmp_path / "annotated_tasks.py")
        sys.modules["annotated_tasks"] = module
        vars(module).update(app=app, TaskResult=TaskResult, TaskError=TaskError)
        exec(compile(source, module.__file__, "exec"), vars(module))
        return module

    yield load_source
    sys.modules.pop("annotated_tasks", None)


def test_a_class_without_schema_is_refused_in_check_and_at_the_first_send(app: Horsies) -> None:
    @app.task("job")
    def job(order: list[Plain]) -> TaskResult[int, TaskError]:
        return TaskResult(ok=len(order))

    (problem,) = app.check()
    refused = bad(job.send([Plain()]))

    assert problem.code is ErrorCode.TASK_INVALID_SIGNATURE
    assert "task 'job': parameter 'order' has a type that cannot be stored" in str(problem)
    assert "Plain has no schema" in problem.notes[0]
    assert problem.help_text
    assert refused.code is TaskSendErrorCode.VALIDATION_FAILED
    assert "Plain has no schema" in str(refused)


def test_a_result_type_without_schema_is_refused(app: Horsies) -> None:
    @app.task("job")
    def job() -> TaskResult[Plain, TaskError]:
        return TaskResult(ok=Plain())

    (problem,) = app.check()

    assert "the return type has a type that cannot be stored" in problem.message


def test_a_name_under_type_checking_is_called_by_its_name(app: Horsies, load: Any) -> None:
    load(
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from decimal import Decimal\n"
        "@app.task('job')\n"
        "def job(price: Decimal) -> TaskResult[int, TaskError]: ...\n"
    )

    (problem,) = app.check()
    refused = bad(app.tasks["job"].send(3))

    assert problem.code is ErrorCode.TASK_INVALID_SIGNATURE
    assert "Decimal is imported under TYPE_CHECKING" in str(problem)
    assert "Decimal is imported under TYPE_CHECKING" in str(refused)


def test_a_forward_reference_that_nothing_defines_is_refused(app: Horsies, load: Any) -> None:
    load("@app.task('job')\ndef job(order: 'Order') -> TaskResult[int, TaskError]: ...\n")

    (problem,) = app.check()

    assert "the name 'Order' is not defined in annotated_tasks" in str(problem)


def test_a_forward_reference_that_the_module_defines_later_is_used(app: Horsies, load: Any) -> None:
    module = load(
        "from dataclasses import dataclass\n"
        "@app.task('job')\n"
        "def job(order: 'Order') -> TaskResult[int, TaskError]:\n"
        "    return TaskResult(ok=order.number)\n"
        "names = app.tasks['job'].definition.signature.names\n"
        "@dataclass\n"
        "class Order:\n"
        "    number: int\n"
    )
    definition = app.tasks["job"].definition

    refused = bad(app.tasks["job"].send({"number": "many"}))
    decoded = definition.decode_arguments('[{"number": 3}]', None)

    assert app.check() == []
    assert "number" in str(refused)
    assert decoded.unwrap() == ((module.Order(3),), {})


def test_a_return_type_that_is_not_defined_says_which(load: Any) -> None:
    with pytest.raises(TaskDefinitionError, match="the name 'Order' is not defined"):
        load("@app.task('job')\ndef job() -> 'TaskResult[Order, TaskError]': ...\n")


def test_a_typed_dict_of_typing_is_refused_before_3_12(app: Horsies, load: Any) -> None:
    load(
        "from typing import TypedDict\n"
        "class Order(TypedDict):\n"
        "    number: int\n"
        "@app.task('job')\n"
        "def job(order: Order) -> TaskResult[int, TaskError]: ...\n"
    )

    problems = [str(problem) for problem in app.check()]

    if sys.version_info >= (3, 12):
        assert problems == []
    else:
        (problem,) = problems
        assert "use typing_extensions.TypedDict" in problem


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def job() -> TaskResult[int, TaskError]:\n    yield 1\n", "generator function"),
        ("async def job() -> TaskResult[int, TaskError]:\n    yield 1\n", "generator function"),
    ],
    ids=["generator", "asynchronous generator"],
)
def test_a_generator_function_is_refused(load: Any, source: str, said: str) -> None:
    with pytest.raises(TaskDefinitionError, match=said) as caught:
        load(f"@app.task('job')\n{source}")

    assert caught.value.code is ErrorCode.TASK_INVALID_SIGNATURE


def test_a_method_is_refused(load: Any) -> None:
    with pytest.raises(TaskDefinitionError, match=r"'Shop\.job' takes 'self'") as caught:
        load(
            "class Shop:\n"
            "    @app.task('job')\n"
            "    def job(self, n: int) -> TaskResult[int, TaskError]: ...\n"
        )

    assert caught.value.code is ErrorCode.TASK_INVALID_SIGNATURE


def test_a_bare_decorator_is_refused(app: Horsies) -> None:
    with pytest.raises(TaskDefinitionError, match=r'write @app\.task\("job"\)') as caught:

        @app.task  # type: ignore[arg-type]
        def job() -> TaskResult[int, TaskError]: ...

    assert caught.value.code is ErrorCode.TASK_INVALID_OPTIONS
    assert app.list_tasks() == []
