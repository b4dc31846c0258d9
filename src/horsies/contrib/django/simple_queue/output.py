"""What a callable returns or yields, as text of a limited size."""

import json
from typing import Any

from horsies.codec.text import storable
from horsies.contrib.django.simple_queue.conf import get_max_output_size

MARKER = "\n[output cut: it is larger than the limit]\n"


def as_text(value: Any) -> str | None:
    """A text as it is, nothing as nothing, anything else as JSON, or as Python shows it."""
    if value is None:
        return None
    if isinstance(value, str):
        return storable(value)
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return storable(str(value))


class OutputLimit:
    """Lets so many bytes pass, then one line that says so."""

    def __init__(self) -> None:
        self._left = get_max_output_size()
        self.is_cut = False

    def cut(self, text: str | None) -> str | None:
        return None if text is None else self.take(text)

    def take(self, text: str) -> str:
        """As much of the text as still fits, cut at a character."""
        if self.is_cut:
            return ""
        encoded = text.encode()
        if len(encoded) <= self._left:
            self._left -= len(encoded)
            return text
        self.is_cut = True
        return encoded[: self._left].decode(errors="ignore") + MARKER
