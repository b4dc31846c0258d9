"""What the admin and the status page show of a task: what is marked secret is masked."""

import inspect
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple, get_type_hints

from horsies.codec.secrecy import masked, masked_arguments
from horsies.contrib.django.models import Task
from horsies.contrib.django.project import app


class Declared(NamedTuple):
    """The annotations of a task's parameters, in their order, and of what it returns."""

    parameters: Mapping[str, object]
    returned: object


def shown_arguments(task: Task) -> tuple[str | None, str | None]:
    """The stored arguments by position and by name, as JSON."""
    return masked_arguments(task.args, task.kwargs, declared_of(task.task_name).parameters)


def shown_result(task: Task, value: Any) -> Any:
    return masked(value, declared_of(task.task_name).returned)


def declared_of(task_name: str) -> Declared:
    """What the code says, as far as it is imported: no row makes a process import anything."""
    known = app.tasks.find(task_name)
    if known is not None:
        resolved = known.definition.annotations.resolved
        own = known.definition.signature.signature.parameters
        return Declared({name: resolved.get(name) for name in own}, known.definition.ok_type)
    module, _, name = task_name.rpartition(".")
    found = getattr(sys.modules.get(module), name, None)
    function = getattr(found, "func", found)
    if not callable(function):
        return Declared({}, None)
    try:
        names = list(inspect.signature(function).parameters)
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, ValueError):  # its annotations cannot be read
        return Declared({}, None)
    if getattr(found, "takes_context", False):
        names = names[1:]
    return Declared({one: hints.get(one) for one in names}, hints.get("return"))
