"""How many rows the plans inside stored functions really handled, told by auto_explain."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import Connection
from psycopg.errors import Diagnostic

_SETTINGS = {
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_triggers": "off",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
}


class Handled:
    """The statements of a block, each with the most rows that one node of its plan handled."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    def add(self, told: Diagnostic) -> None:
        _, _, text = (told.message_primary or "").partition("plan:\n")
        if text:
            plan = json.loads(text)
            query = " ".join(plan["Query Text"].split())
            self.rows[query] = max(self.rows.get(query, 0), *_handled(plan["Plan"]))


@contextmanager
def explained(connection: Connection[Any]) -> Iterator[Handled]:
    """What the statements of the block handle; the connection must be a superuser's."""
    handled = Handled()
    connection.execute("load 'auto_explain'")
    for name, value in _SETTINGS.items():
        connection.execute("select set_config(%s, %s, true)", [name, value])
    connection.add_notice_handler(handled.add)
    try:
        yield handled
    finally:
        connection.remove_notice_handler(handled.add)
        connection.execute("select set_config('auto_explain.log_min_duration', '-1', true)")


def _handled(node: dict[str, Any]) -> Iterator[int]:
    """Rows that came out of a node or were thrown away by it, in all its loops."""
    removed = sum(count for key, count in node.items() if key.startswith("Rows Removed by"))
    yield round((node["Actual Rows"] + removed) * node["Actual Loops"])
    for child in node.get("Plans", ()):
        yield from _handled(child)
