"""What the pages of the documentation show, for the tests that produce it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def shown_in(page: str, source: str) -> list[str]:
    """Output that a page shows, below the comment that names where it comes from."""
    pattern = rf"^<!-- {re.escape(source)} -->\n```text\n(.*?)^```$"
    found = re.findall(pattern, (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
    return [text.rstrip() for text in found]
