"""A database router that keeps our tables in one database of several."""

from typing import Any

from horsies.contrib.django.conf import SIMPLE_QUEUE, setting

_OURS = ("horsies", SIMPLE_QUEUE)


class HorsiesRouter:
    """Sends our models to `HORSIES["DATABASE_ALIAS"]`, and nothing else there or elsewhere."""

    def db_for_read(self, model: Any, **_hints: Any) -> str | None:
        return setting("DATABASE_ALIAS") if model._meta.app_label in _OURS else None

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return self.db_for_read(model, **hints)

    def allow_relation(self, one: Any, other: Any, **_hints: Any) -> bool | None:
        both_ours = {one._meta.app_label, other._meta.app_label} <= set(_OURS)
        return True if both_ours else None

    def allow_migrate(self, db: str, app_label: str, **_hints: Any) -> bool | None:
        return db == setting("DATABASE_ALIAS") if app_label in _OURS else None
