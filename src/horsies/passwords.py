"""The one place that keeps passwords of databases out of what people and log files get to see."""

import re
from urllib.parse import unquote

# In URLs up to the last @: a password may contain an unescaped one, and masking too much is safe.
# As a parameter of a URL, or in `host=... password=...`, where it may stand in quotes.
_PASSWORD_PATTERN = re.compile(
    r"(?<=:).*(?=@)|(?<=password)(\s*=\s*)('(?:\\.|[^'\\])*'?|(?:\\.|[^\s&])*)",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile(r"""(["']).*\1""")
_WRITTEN_PASSWORD = re.compile(r"(?<=:).*(?=@)|(?<=password).*(?=[\"'])", re.IGNORECASE)


def mask_url(url: str) -> str:
    """Replace the password by `***` in a database URL, or in what was given for one."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "", url
    return f"{scheme}{separator}{_PASSWORD_PATTERN.sub(_hidden, rest)}"


def _hidden(found: re.Match[str]) -> str:
    return f"{found[1] or ''}***"


def mask_error(text: str, url: str) -> str:
    """Hide what an error repeats of a URL's password, also of one that cannot be parsed."""
    secrets = _secrets(url)

    def hide(quoted: re.Match[str]) -> str:
        words = quoted[2]
        is_secret = len(words) > 2 and any(words in secret for secret in secrets)
        return f"{quoted[1]}***{quoted[1]}" if is_secret else quoted[0]

    text = re.sub(r"""(["'])(.+?)\1""", hide, text)
    for secret in secrets:
        # A short one is hidden where it stands alone, or the text would be hard to read.
        pattern = re.escape(secret) if len(secret) > 2 else rf"(?<!\w){re.escape(secret)}(?!\w)"
        text = re.sub(pattern, "***", text)
    return text


def _secrets(url: str) -> list[str]:
    """The password as it is written and as it is meant, and its parts, the longest first.

    A parser that meets an unescaped @ takes what is behind it for the host, and says so.
    """
    rest = url.partition("://")[2] or url
    written = [found[2] or found[0] for found in _PASSWORD_PATTERN.finditer(rest)]
    whole = {text for one in written for text in (one, one.strip("'"), unquote(one))}
    parts = {part for text in whole for part in (text, *re.split("[@:/?#]", text))}
    return sorted(filter(None, parts), key=len, reverse=True)


def mask_source(line: str) -> str:
    """A line of source code: from the first quote to the last it may hold an address."""
    return _QUOTED.sub(lambda found: _WRITTEN_PASSWORD.sub("***", found[0]), line)
