"""A task as words for a terminal or for Python, to be copied from its page."""

import json
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from horsies.operations.detail import TaskDetail
from horsies.states import TASK_TERMINAL_STATES, TaskStatus
from horsies.web.masking import Argument


class Copy(NamedTuple):
    """A text, and what it is for."""

    name: str
    text: str


def copies(task: TaskDetail, arguments: Sequence[Argument]) -> list[Copy]:
    """What fits the state of the task."""
    task_id, name = task.info.task_id, task.info.task_name
    word = shlex.quote(task_id) if not task_id.startswith("-") else f"-- {shlex.quote(task_id)}"
    given = ", ".join(_python(one) for one in arguments)
    made = [
        Copy("Id", task_id),
        Copy("Show in a terminal", f"horsies task {word}"),
        Copy("Send again in Python", f"app.tasks[{name!r}].send({given})"),
        Copy("Its handle in Python", f"app.handle({task_id!r})"),
        Copy("Find its like in a terminal", f"horsies tasks {shlex.quote(f'task:{name}')}"),
    ]
    if task.info.status not in TASK_TERMINAL_STATES:
        made.append(Copy("Explain in a terminal", f"horsies why {word}"))
        made.append(Copy("Cancel in a terminal", f"horsies cancel {word}"))
    elif task.info.status in (TaskStatus.FAILED, TaskStatus.CANCELLED):
        made.append(Copy("Requeue in a terminal", f"horsies requeue {word}"))
        made.append(
            Copy("Requeue in Python", f"app.operations.requeue({task_id!r})"),
        )
    return made


def _python(argument: Argument) -> str:
    """An argument as Python writes it: JSON's values are Python's, but for three words."""
    value = repr(json.loads(json.dumps(argument.value)))
    return value if argument.name.startswith("args[") else f"{argument.name}={value}"
