"""Waiting for sockets of any number: select() refuses those above 1023."""

import select


def has_news(*files: int, within_s: float | None = 0) -> bool:
    """Whether one of the files can be read, at once or within a time; None waits forever."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select(files, [], [], within_s)[0])
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    return bool(poll.poll(None if within_s is None else within_s * 1000))
