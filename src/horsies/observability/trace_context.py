"""The sender's span in the options of a row: a W3C traceparent as the last key of their JSON.

It is not part of the fingerprint, so a send that is repeated under another span is still the same.
"""

_KEY, _END = ',"traceparent":"', '"}'
# A traceparent has 55 characters: where it stands is known without reading the options.
_LENGTH = len(_KEY) + 55 + len(_END)
_NO_OPTIONS = '{"retry_policy":null}'  # never written otherwise
_SPAN_ALONE = _NO_OPTIONS[:-1] + _KEY


def with_traceparent(options: str | None, traceparent: str) -> str:
    """Add the sender's span to written options."""
    return f"{(options or _NO_OPTIONS)[:-1]}{_KEY}{traceparent}{_END}"


def traceparent_of(options: str | None) -> str | None:
    """The sender's span, if the row was sent with one."""
    if options is None or not options.startswith(_KEY, -_LENGTH):
        return None
    return options[len(_KEY) - _LENGTH : -len(_END)]


def without_traceparent(options: str | None) -> str | None:
    """The options alone, which are the same for many rows."""
    if options is None or not options.startswith(_KEY, -_LENGTH):
        return options
    if options.startswith(_SPAN_ALONE):
        return None
    return f"{options[:-_LENGTH]}}}"
