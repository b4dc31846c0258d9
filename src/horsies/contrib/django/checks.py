"""System checks: what is wrong with the settings, where, and what to do about it."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004
from django.db import connections
from django.utils.module_loading import import_string

from horsies.contrib.django.conf import SETTINGS, raw_settings, setting

APP = "horsies.contrib.django"


@register
def check_settings(**_kwargs: Any) -> list[CheckMessage]:
    return [*_database_messages(), *_setting_messages(), *_enqueue_messages()]


@register(Tags.database)
def check_migrations(*, databases: Iterable[str] | None = None, **_kwargs: Any) -> list[Any]:
    from horsies.contrib.django.schema import pending_migrations

    alias = setting("DATABASE_ALIAS")
    if alias not in (databases or ()) or connections[alias].vendor != "postgresql":
        return []
    if sys.argv[1:2] == ["migrate"]:  # it checks before it does what we would ask for
        return []
    pending = pending_migrations(alias)
    if not pending:
        return []
    return [
        Warning(
            f"the database lacks {', '.join(pending)}",
            hint="Run manage.py migrate.",
            id="horsies.W001",
        )
    ]


@register(deploy=True)
def check_deployment(**_kwargs: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if setting("STATUS_VIEW_ACCESS") == "public":
        found.append(
            Warning(
                "everyone may read the status of tasks, with their arguments and tracebacks",
                hint='Set HORSIES["STATUS_VIEW_ACCESS"] to "staff" or "authenticated".',
                id="horsies.W003",
            )
        )
    if setting("ALLOWED_CALLABLES") is None:
        found.append(
            Warning(
                "everyone who may insert a task may run any importable function",
                hint="List the functions in DJANGO_SIMPLE_QUEUE_ALLOWED_TASKS.",
                id="horsies.W004",
            )
        )
    return found


def backend_messages(alias: str, options: dict[str, Any], known: set[str]) -> Iterator[Any]:
    """What is wrong with one entry of TASKS; Django asks the backend itself."""
    if not apps.is_installed(APP):
        yield Error(
            f"TASKS[{alias!r}] uses HorsiesBackend, but its app is not installed",
            hint=f"Add {APP!r} to INSTALLED_APPS.",
            id="horsies.E002",
        )
    for name in sorted(set(options) - known):
        yield Error(
            f"TASKS[{alias!r}]['OPTIONS'] has an unknown key {name!r}",
            hint=f"The keys are {', '.join(sorted(known))}.",
            id="horsies.E003",
        )


def _database_messages() -> Iterator[CheckMessage]:
    alias = setting("DATABASE_ALIAS")
    if alias not in connections:
        yield Error(
            f"HORSIES['DATABASE_ALIAS'] is {alias!r}, which is not in DATABASES",
            hint=f"Use one of {', '.join(connections)}.",
            id="horsies.E001",
        )
    elif connections[alias].vendor != "postgresql":
        yield Error(
            f"the database {alias!r} is not PostgreSQL",
            hint="Point HORSIES['DATABASE_ALIAS'] at a PostgreSQL database.",
            id="horsies.E001",
        )


def _setting_messages() -> Iterator[CheckMessage]:
    given = getattr(django_settings, "HORSIES", {})
    if not isinstance(given, dict):
        yield Error("HORSIES must be a dictionary", id="horsies.E004")
    for name, value in raw_settings().items():
        known = SETTINGS.get(name)
        if known is None:
            yield Error(
                f"HORSIES has an unknown key {name!r}",
                hint=f"The keys are {', '.join(SETTINGS)}.",
                id="horsies.E003",
            )
            continue
        is_bool = isinstance(value, bool) and bool not in known.kinds
        if not isinstance(value, known.kinds) or is_bool:
            wanted = " or ".join(kind.__name__ for kind in known.kinds)
            yield Error(f"HORSIES[{name!r}] must be {wanted}, got {value!r}", id="horsies.E004")
        elif known.choices and value not in known.choices:
            choices = ", ".join(known.choices)
            yield Error(
                f"HORSIES[{name!r}] must be one of {choices}, got {value!r}", id="horsies.E004"
            )
        elif name == "STATUS_VIEW_ACCESS":
            yield from _access_messages(str(value))


def _access_messages(value: str) -> Iterator[CheckMessage]:
    if value in ("staff", "authenticated", "public"):
        return
    try:
        import_string(value)
    except ImportError:
        yield Error(
            f"HORSIES['STATUS_VIEW_ACCESS'] is {value!r}, which is neither a word nor a function",
            hint='Use "staff", "authenticated", "public" or the path of a function.',
            id="horsies.E004",
        )


def _enqueue_messages() -> Iterator[CheckMessage]:
    alias = setting("DATABASE_ALIAS")
    database = django_settings.DATABASES.get(alias, {})
    if setting("ENQUEUE") == "autocommit" and database.get("ATOMIC_REQUESTS"):
        yield Warning(
            "tasks are enqueued outside of the transaction that ATOMIC_REQUESTS opens",
            hint='Use "atomic" or "on_commit" as HORSIES["ENQUEUE"].',
            id="horsies.W002",
        )
