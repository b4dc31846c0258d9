"""The settings of the integration: one dictionary `HORSIES`, read whenever a value is needed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings

SIMPLE_QUEUE = "django_simple_queue"  # the label of the compatibility app


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: its default, its default with the compatibility app, and the old name there."""

    default: Any
    kinds: tuple[type, ...]
    simple_default: Any = ...
    old_name: str | None = None
    choices: tuple[str, ...] = ()


SETTINGS: dict[str, Setting] = {
    "DATABASE_ALIAS": Setting("default", (str,)),
    "AUTODISCOVER_MODULE": Setting("tasks", (str, type(None))),
    "IMPORT_PATHS": Setting((), (list, tuple)),
    "ON_APP_READY": Setting(None, (str, type(None))),
    "ALLOWED_CALLABLES": Setting(
        (),
        (list, tuple, set, frozenset, type(None)),
        None,
        "DJANGO_SIMPLE_QUEUE_ALLOWED_TASKS",
    ),
    "TASK_TIMEOUT": Setting(
        None, (int, float, type(None)), 3600, "DJANGO_SIMPLE_QUEUE_TASK_TIMEOUT"
    ),
    "TERMINATE_GRACE": Setting(5, (int, float)),
    "MAX_ARGS_SIZE": Setting(1_048_576, (int,), old_name="DJANGO_SIMPLE_QUEUE_MAX_ARGS_SIZE"),
    "MAX_OUTPUT_SIZE": Setting(10_485_760, (int,), old_name="DJANGO_SIMPLE_QUEUE_MAX_OUTPUT_SIZE"),
    "MAX_LOG_SIZE": Setting(10_485_760, (int,)),
    "CAPTURE_LOG": Setting(False, (bool,), True),
    # The original starts a process for each task, which costs more than most tasks.
    "MAX_TASKS_PER_CHILD": Setting(0, (int,), 100),
    "ENQUEUE": Setting("atomic", (str,), choices=("atomic", "on_commit", "autocommit")),
    "STATUS_VIEW_ACCESS": Setting("staff", (str,), "public"),
    "READONLY_MODELS": Setting(True, (bool,)),
    "EAGER": Setting(False, (bool,)),
    "WORKER": Setting({}, (dict,)),
    "APP": Setting({}, (dict,)),
}


def setting(name: str) -> Any:
    """The value of a key: as given in HORSIES, else under its old name, else the default."""
    known = SETTINGS[name]
    given = raw_settings()
    if name in given:
        return given[name]
    if apps.is_installed("horsies.contrib.django.simple_queue"):
        if known.old_name is not None and hasattr(django_settings, known.old_name):
            return getattr(django_settings, known.old_name)
        if known.simple_default is not ...:
            return known.simple_default
    return known.default


def raw_settings() -> dict[str, Any]:
    given = getattr(django_settings, "HORSIES", None) or {}
    return given if isinstance(given, dict) else {}


def timeout_s() -> float | None:
    """The time limit of tasks that have none of their own; not positive means no limit."""
    limit = setting("TASK_TIMEOUT")
    return limit if limit is not None and limit > 0 else None


def allowed_callables() -> frozenset[str] | None:
    """The dotted paths that may run; `None` allows all."""
    allowed: Iterable[str] | None = setting("ALLOWED_CALLABLES")
    return None if allowed is None else frozenset(allowed)
