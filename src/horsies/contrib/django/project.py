"""The project's one Horsies app, made from Django's settings."""

import re
from functools import cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from django.apps import apps
from django.conf import settings as django_settings
from django.db import connections
from django.utils.module_loading import autodiscover_modules, import_string

from horsies.app import Horsies
from horsies.broker.postgres import PostgresBroker
from horsies.config import AppConfig, CustomQueueConfig, PostgresConfig, QueueMode, RecoveryConfig
from horsies.contrib.django.conf import setting, timeout_s
from horsies.errors import HorsiesError
from horsies.tasks.definition import TaskDefinition

if TYPE_CHECKING:
    from horsies.operations.operations import Operations

LOCATOR = "horsies.contrib.django.worker_app:app"
BACKEND = "HorsiesBackend"
# What Django puts among the parameters for its own connections.
_DJANGO_ONLY = ("cursor_factory", "context", "prepare_threshold")
_SEARCH_PATH = re.compile(r"search_path\s*=\s*\"?([^\s\",]+)")


class DjangoApp(Horsies):
    """An app whose database is a Django connection's, also while tests rename it."""

    def __init__(self) -> None:
        super().__init__(app_config())
        self.resolver = stored_definition

    def get_broker(self) -> PostgresBroker:
        """The broker on the database that Django's connection leads to now."""
        wanted = broker_config()
        if self._broker is not None and self._broker.config != wanted:
            self._broker.close()
            self._broker = None
        if self._broker is None:
            self.config = self.config.model_copy(update={"broker": wanted})
        broker = super().get_broker()
        broker.database.trust_schema()  # Django's migrations make the tables
        return broker

    @cached_property
    def operations(self) -> "Operations":
        """See, explain and steer the running system; changes join Django's transaction."""
        from horsies.contrib.django.operations import ProjectOperations  # most processes only send

        return ProjectOperations(self)

    def task(self, task_name: str, func: Any = None, **options: Any) -> Any:
        """As `Horsies.task`; the queue is `default` unless another is named."""
        if self.config.queue_mode is QueueMode.CUSTOM:
            options.setdefault("queue_name", "default")
        return super().task(task_name, func, **options)


def app_config() -> AppConfig:
    """The engine's configuration; `HORSIES["APP"]` has the last word."""
    limit = timeout_s()
    derived: dict[str, Any] = {
        "broker": broker_config(),
        "task_timeout_ms": None if limit is None else max(1_000, int(limit * 1000)),
        "capture_task_output": setting("CAPTURE_LOG"),
        "task_log_max_bytes": min(10_485_760, max(1_024, setting("MAX_LOG_SIZE"))),
        "allow_plain_returns": True,
        **queue_config(configured_queues()),
    }
    if apps.is_installed("horsies.contrib.django.simple_queue"):
        # django-simple-queue keeps ended tasks until someone deletes them.
        derived["recovery"] = RecoveryConfig(terminal_record_retention_hours=None)
    return AppConfig(**{**derived, **setting("APP")})


def queue_config(names: list[str]) -> dict[str, Any]:
    """The engine's queues; a project with the one default queue needs no list."""
    if names == ["default"]:
        return {"queue_mode": QueueMode.DEFAULT, "custom_queues": None}
    queues = [CustomQueueConfig(name=name, priority=100, max_concurrency=None) for name in names]
    return {"queue_mode": QueueMode.CUSTOM, "custom_queues": queues}


def task_settings() -> dict[str, dict[str, Any]]:
    """The entries of TASKS that use our backend, or one derived from it."""
    ours: dict[str, dict[str, Any]] = {}
    for alias, parameters in (getattr(django_settings, "TASKS", None) or {}).items():
        path = str(parameters.get("BACKEND", ""))
        if path.startswith("horsies.") or _is_derived(path):
            ours[alias] = parameters
    return ours


def _is_derived(path: str) -> bool:
    try:
        backend = import_string(path)
    except ImportError:
        return False
    return any(cls.__name__ == BACKEND for cls in getattr(backend, "__mro__", ()))


def configured_queues() -> list[str]:
    """The queues that TASKS names, with `default`, which rows without a queue use."""
    names = {"default"}
    for parameters in task_settings().values():
        names.update(parameters.get("QUEUES", ()))
    return sorted(names)


def broker_config() -> PostgresConfig:
    """Where Django's connection leads, for connections of the engine's own."""
    alias = setting("DATABASE_ALIAS")
    if alias not in connections or connections[alias].vendor != "postgresql":
        return PostgresConfig(database_url="postgresql://")  # the system check says what to do
    connection = connections[alias]
    parameters = {
        key: value
        for key, value in connection.get_connection_params().items()
        if key not in _DJANGO_ONLY and value not in (None, "")
    }
    found = _SEARCH_PATH.search(str(parameters.pop("options", "")))
    name = quote(str(parameters.pop("dbname", "")), safe="")
    query = urlencode({key: str(value) for key, value in parameters.items()}, quote_via=quote)
    return PostgresConfig(
        database_url=f"postgresql:///{name}?{query}",
        schema=found[1] if found else None,
    )


@lru_cache(maxsize=1024)
def stored_definition(task_name: str) -> TaskDefinition | None:
    """The definition of a name that only its row explains: see `runtime.run_stored`."""
    from horsies.contrib.django.runtime import define_stored

    try:
        return define_stored(task_name, AppConfig(broker=app.config.broker))
    except HorsiesError:  # not a name at all
        return None


def import_task_modules() -> None:
    """Import what may define tasks, as Django's own discovery does; then call the ready hook."""
    if module := setting("AUTODISCOVER_MODULE"):
        autodiscover_modules(module)
    for path in setting("IMPORT_PATHS"):
        import_module(path)
    if hook := setting("ON_APP_READY"):
        import_string(hook)(app)


app = DjangoApp()
