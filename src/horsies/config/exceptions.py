"""The mapping of exception classes to error codes, and the form of such codes."""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from horsies.codes import ErrorCode
from horsies.errors import ConfigurationError, SourceLocation

ExceptionMapper: TypeAlias = dict[type[BaseException], str]

_CODE_PATTERN = re.compile(r"[A-Z][A-Z0-9_]*")
_EXCEPTION_CLASS_PATTERN = re.compile(r"[\w.]*(?:Error|Exception)")
_CODE_HELP = "use an UPPER_SNAKE code such as 'PAYMENT_REFUSED'"


def code_problem(code: object) -> str | None:
    """Describe what is wrong with a configured error code; None if it is valid."""
    if not isinstance(code, str):
        return f"must be a string, not {type(code).__name__}"
    if _EXCEPTION_CLASS_PATTERN.fullmatch(code):
        return f"{code!r} looks like an exception class name"
    if not _CODE_PATTERN.fullmatch(code):
        return f"{code!r} is invalid: it must match [A-Z][A-Z0-9_]*"
    return None


def mapper_problems(
    mapper: object, *, owner: str, location: SourceLocation | None = None
) -> Iterator[ConfigurationError]:
    """Yield what is wrong with a mapper: its shape, its keys, its codes."""
    if not isinstance(mapper, Mapping):
        yield _refusal(f"{owner}: exception_mapper must be a mapping", repr(mapper), location)
        return
    for key, code in mapper.items():
        if not (isinstance(key, type) and issubclass(key, BaseException)):
            text = f"{owner}: Mapper key {key!r} is not an exception class"
            yield _refusal(text, f"{key!r}: {code!r}", location)
        elif problem := code_problem(code):
            text = f"{owner}: Mapper value for {key.__name__} {problem}"
            yield _refusal(text, f"{key.__name__}: {code!r}", location)


def default_code_problems(
    code: object, *, owner: str, location: SourceLocation | None = None
) -> Iterator[ConfigurationError]:
    """Yield what is wrong with a default_unhandled_error_code."""
    if problem := code_problem(code):
        text = f"{owner}: default_unhandled_error_code {problem}"
        yield _refusal(text, repr(code), location)


def _refusal(message: str, found: str, location: SourceLocation | None) -> ConfigurationError:
    return ConfigurationError(
        message,
        ErrorCode.CONFIG_INVALID_EXCEPTION_MAPPER,
        location,
        [f"found {found}"],
        _CODE_HELP,
    )
