"""The settings of django-simple-queue, read at each call."""

from horsies.contrib.django.conf import allowed_callables, setting, timeout_s


def get_allowed_tasks() -> set[str] | None:
    """The callables that may run; `None` allows all, an empty set none."""
    allowed = allowed_callables()
    return None if allowed is None else set(allowed)


def is_task_allowed(task_path: str) -> bool:
    allowed = get_allowed_tasks()
    return allowed is None or task_path in allowed


def get_task_timeout() -> int | None:
    """Seconds a task may run; `None` is no limit."""
    limit = timeout_s()
    return None if limit is None else int(limit)


def get_max_output_size() -> int:
    return int(setting("MAX_OUTPUT_SIZE"))


def get_max_args_size() -> int:
    return int(setting("MAX_ARGS_SIZE"))
