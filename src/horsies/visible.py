"""Text that others have stored stays text where people read it: in terminals and in log lines."""

# Controls, among them ESC, which begins the commands of terminals; marks that turn the direction
# of writing; separators that some readers take for the end of a line.
_HIDDEN = (
    *range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F,
    *range(0x2028, 0x202F), *range(0x2066, 0x206A),
)  # fmt: skip
# Written as JSON writes them, so that JSON that passes here stays what it is.
_ESCAPES = {number: f"\\u{number:04x}" for number in _HIDDEN}
_NOTHING = dict.fromkeys(_HIDDEN)


def visible(text: str) -> str:
    """Write out what would act on a terminal instead of being seen; newlines and tabs stay."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def harmless(text: str) -> str:
    """Leave it out instead, where a line has no room for more characters."""
    return text if text.isprintable() else text.translate(_NOTHING)
