"""One attempt, wherever it runs."""

import json

import pytest

from horsies.executors import attempt
from horsies.executors.base import Call
from horsies.executors.current import Running
from horsies.executors.host import Host
from horsies.tasks.definition import TaskDefinition
from support.executor_tasks import TestDefinitions


def test_a_result_that_breaks_its_own_writing_is_still_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def break_down(*_: object) -> None:
        raise RecursionError("too deep")

    definition = TestDefinitions().get("add")
    monkeypatch.setattr(TaskDefinition, "settle_result", break_down)

    delivered = attempt.run(definition, Running(Call("t", "add", 1, "[1, 2]")), Host())

    assert (delivered.is_ok, delivered.error_code) == (False, "WORKER_SERIALIZATION_ERROR")
    assert "too deep" in json.loads(delivered.result)["err"]["message"]
