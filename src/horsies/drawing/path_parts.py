"""Ids and names of any kind as one part of a path, and back.

Whatever is not plain is written as `~` and two hex digits. Percent signs would not do: browsers
resolve `%2e%2e` as `..`, and proxies decode `%2F`, so that an id could lead to another page.
"""

import re

_NOT_PLAIN = re.compile(rb"[^A-Za-z0-9._-]")
_WRITTEN = re.compile(r"(?:~[0-9A-F]{2})+")
_NOTHING = "~"


def quoted(name: str) -> str:
    """A name as one part of a path: `2026/11/16` is `2026~2F11~2F16`."""
    if not name.strip("."):  # a path of dots would lead elsewhere
        return "~2E" * len(name) or _NOTHING
    return _NOT_PLAIN.sub(lambda found: f"~{found[0][0]:02X}".encode(), name.encode()).decode()


def unquoted(part: str) -> str:
    """The name that was quoted; one that somebody else has written as a plain part stays so."""
    return "" if part == _NOTHING else _WRITTEN.sub(_read, part)


def _read(written: re.Match[str]) -> str:
    try:
        return bytes.fromhex(written[0].replace("~", "")).decode()
    except ValueError:
        return written[0]
