"""Whether the terminal is dark: ask it, and if it does not say, believe its environment."""

import os
import re
import select
import sys
import termios
import tty

_ASK = b"\x1b]11;?\x1b\\\x1b[c"  # the background; then what every terminal answers, to end the wait
_COLOUR = re.compile(rb"\x1b\]11;rgba?:([0-9a-f]+)/([0-9a-f]+)/([0-9a-f]+)", re.IGNORECASE)
_LAST = re.compile(rb"\x1b\[\?[\d;]*c")
_WAIT_S = 0.3


def is_terminal_dark() -> bool:
    """Dark unless the terminal says otherwise."""
    told = told_by(sys.stdin.fileno(), sys.stdout.fileno()) if sys.stdin.isatty() else None
    if told is not None:
        return told
    # `15;0` or `0;default;15`: the last is the background, and 7 and 15 are white.
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] not in ("7", "15")


def told_by(source: int, sink: int) -> bool | None:
    """What the terminal answers within a moment; None if it does not know."""
    before = termios.tcgetattr(source)
    answer = b""
    try:
        tty.setcbreak(source, termios.TCSANOW)
        os.write(sink, _ASK)
        while not _LAST.search(answer) and select.select([source], [], [], _WAIT_S)[0]:
            read = os.read(source, 1024)
            if not read:
                break
            answer += read
    finally:
        termios.tcsetattr(source, termios.TCSANOW, before)
    found = _COLOUR.search(answer)
    if found is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
    brightness = 0.299 * red + 0.587 * green + 0.114 * blue
    return bool(brightness < 0.5)
