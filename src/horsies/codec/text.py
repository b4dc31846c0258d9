"""What a PostgreSQL text can hold: neither NUL nor half of a surrogate pair.

Values are JSON, where both have an escape: NUL is stored so and comes back, lone surrogates are
refused with the value. Names and keys with either are refused; text for people shows U+FFFD.
"""


def is_storable(text: str) -> bool:
    """Whether a text column can hold it as it is."""
    return "\x00" not in text and (text.isascii() or storable(text) == text)


def storable(text: str) -> str:
    """Replace what a text column cannot hold."""
    if "\x00" in text or not text.isascii():
        text = text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
    return text
