"""The database URL that a `.env` file names, for commands that are given no app and no URL."""

import os
import re
from pathlib import Path

URL_VARIABLES = ("HORSIES_DATABASE_URL", "DATABASE_URL")
# `export` may stand before it, quotes around the value, and a comment after it.
_LINE = re.compile(r"\s*(?:export\s+)?(\w+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|((?:(?!\s#)\S)*))")


def url_in(file: Path) -> str | None:
    """The URL in this file, if there is one; bytes that are no UTF-8 do not matter elsewhere."""
    if not file.is_file():
        return None
    text = file.read_text("utf-8-sig", "replace")
    lines = (_LINE.match(line) for line in text.splitlines())
    found = {line[1]: line[2] or line[3] or line[4] for line in lines if line}
    return next((found[name] for name in URL_VARIABLES if found.get(name)), None)


def url_here() -> str | None:
    """The URL of the working directory's file, unless the environment has one."""
    if any(os.environ.get(name) for name in URL_VARIABLES):
        return None
    return url_in(Path(".env"))
