"""Startup errors: misuse and misconfiguration, rendered like compiler errors."""

import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Self

from horsies.codes import ErrorCode
from horsies.passwords import mask_source
from horsies.visible import visible


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in a source file; columns count from 1, and `end_column` is exclusive."""

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None

    @classmethod
    def from_frame(cls, frame: FrameType) -> "SourceLocation":
        return cls(frame.f_code.co_filename, frame.f_lineno)

    @classmethod
    def from_function(cls, function: Callable[..., object]) -> "SourceLocation | None":
        code = getattr(function, "__code__", None)
        return None if code is None else cls(code.co_filename, code.co_firstlineno)

    def get_source_line(self) -> str | None:
        """Return the line without its newline, or None if the file cannot be read."""
        text = linecache.getline(self.file, self.line)
        return text.rstrip("\r\n") if text else None

    def format_short(self) -> str:
        place = f"{self.file}:{self.line}"
        return place if self.column is None else f"{place}:{self.column}"


class HorsiesError(Exception):
    """An invalid definition or configuration: what is wrong, where, and how to fix it."""

    __module__ = "horsies"

    def __init__(
        self,
        message: str,
        code: ErrorCode | None = None,
        location: SourceLocation | None = None,
        notes: Sequence[str] | None = None,
        help_text: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.location = _user_location() if location is None else location
        self.notes: list[str] = list(notes or ())
        self.help_text = help_text

    def with_note(self, note: str) -> Self:
        self.notes.append(note)
        return self

    def with_help(self, help_text: str) -> Self:
        self.help_text = help_text
        return self

    def with_location(self, location: SourceLocation | None) -> Self:
        self.location = location
        return self

    def with_location_from_frame(self, frame: FrameType) -> Self:
        return self.with_location(SourceLocation.from_frame(frame))

    def format_rust_style(self, use_colors: bool | None = None) -> str:
        paint = _Paint(_wants_colors() if use_colors is None else use_colors)
        code = f"[{self.code.value}]" if self.code is not None else ""
        lines = ["", paint.red(f"error{code}:") + f" {visible(self.message)}"]
        lines += _location_lines(self.location, paint)
        for note in self.notes:
            first, *rest = visible(note).split("\n")
            lines.append(f"   {paint.blue('=')} note: {first}")
            lines += [f"          {line}" for line in rest]
        if self.help_text is not None:
            lines += ["", f"   {paint.blue('=')} help:"]
            lines += [f"        {line}" for line in visible(self.help_text).split("\n")]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.format_rust_style(use_colors=False)


class ConfigurationError(HorsiesError, ValueError):
    """An invalid configuration, queue or command line."""

    __module__ = "horsies"


class TaskDefinitionError(HorsiesError, TypeError):
    """The task decorator was used incorrectly."""

    __module__ = "horsies"


class WorkflowValidationError(HorsiesError):
    """An invalid workflow spec, definition or node."""

    __module__ = "horsies"


class RegistryError(HorsiesError):
    """A task name is unknown or already taken."""

    __module__ = "horsies"


class NotRegistered(RegistryError, KeyError):  # noqa: N818  # the contract's name
    """This process has no task with this name."""

    def __init__(self, task_name: str) -> None:
        super().__init__(
            f"task {task_name!r} is not registered",
            ErrorCode.TASK_NOT_REGISTERED,
            help_text="import the module that defines it, or list it in app.discover_tasks([...])",
        )
        self.task_name = task_name


class DuplicateTaskNameError(RegistryError):
    """Two places define a task with the same name."""

    def __init__(
        self,
        task_name: str,
        location: SourceLocation | None = None,
        notes: Sequence[str] | None = None,
    ) -> None:
        super().__init__(
            f"task name {task_name!r} is already registered",
            ErrorCode.TASK_DUPLICATE_NAME,
            location,
            notes,
            "give each task a unique name",
        )
        self.task_name = task_name


@dataclass(slots=True)
class ValidationReport:
    """All errors found in one phase."""

    phase_name: str
    errors: list[HorsiesError] = field(default_factory=list[HorsiesError])

    def add(self, error: HorsiesError) -> None:
        self.errors.append(error)

    def has_errors(self) -> bool:
        return bool(self.errors)

    def to_error(self) -> HorsiesError | None:
        """Return None, the only error, or one error that contains all of them."""
        if len(self.errors) < 2:
            return self.errors[0] if self.errors else None
        return MultipleValidationErrors("", self)

    def format_rust_style(self, use_colors: bool | None = None) -> str:
        paint = _Paint(_wants_colors() if use_colors is None else use_colors)
        parts = [error.format_rust_style(paint.is_on) for error in self.errors]
        return "\n".join([*parts, "", f"{paint.red('error:')} {_closing_sentence(self)}"])

    def __str__(self) -> str:
        return self.format_rust_style(use_colors=False)


class MultipleValidationErrors(HorsiesError, ValueError):  # noqa: N818  # the contract's name
    """Two or more errors of one phase, in `report`."""

    __module__ = "horsies"

    def __init__(self, message: str, report: ValidationReport) -> None:
        super().__init__(message or _closing_sentence(report))
        self.report = report

    def format_rust_style(self, use_colors: bool | None = None) -> str:
        return self.report.format_rust_style(use_colors)


def _closing_sentence(report: ValidationReport) -> str:
    return f"aborting due to {len(report.errors)} previous errors"


@dataclass(frozen=True, slots=True)
class _Paint:
    is_on: bool

    def red(self, text: str) -> str:
        return f"\x1b[1;31m{text}\x1b[0m" if self.is_on else text

    def blue(self, text: str) -> str:
        return f"\x1b[1;34m{text}\x1b[0m" if self.is_on else text


def _wants_colors() -> bool:
    if os.environ.get("HORSIES_FORCE_COLOR", "").lower() in {"1", "true", "yes"}:
        return True
    return "NO_COLOR" not in os.environ and sys.stderr is not None and sys.stderr.isatty()


def _location_lines(location: SourceLocation | None, paint: _Paint) -> list[str]:
    if location is None:
        return []
    lines = [f"  {paint.blue('-->')} {location.format_short()}"]
    source = mask_source(location.get_source_line() or "")
    if not source:
        return lines
    indent = len(source) - len(source.lstrip())
    start = indent if location.column is None else location.column - 1
    written = len(source.rstrip())
    end = written if location.end_column is None else min(location.end_column - 1, written)
    underline = " " * start + paint.red("^" * max(end - start, 1))
    return [
        *lines,
        paint.blue("     |"),
        paint.blue(f"{location.line:>5}|") + f" {source}",
        paint.blue("     |") + f" {underline}",
    ]


def location_of(error: BaseException) -> SourceLocation | None:
    """Return the last line of user code in the traceback of an exception."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return SourceLocation(error.filename, error.lineno)
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not _is_foreign(frame.f_code.co_filename):
            found = SourceLocation(frame.f_code.co_filename, line)
    return found


def _user_location() -> SourceLocation | None:
    """Find the first frame outside this package and installed libraries."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _is_foreign(frame.f_code.co_filename):
            return SourceLocation.from_frame(frame)
        frame = frame.f_back
    return None


@cache  # a broken workflow of 10,000 nodes has as many errors, each with its place
def _is_foreign(filename: str) -> bool:
    # Also behind a link: pipx and uv call console scripts through one.
    foreign = _foreign_starts()
    return filename.startswith(foreign) or os.path.realpath(filename).startswith(foreign)


@cache
def _foreign_starts() -> tuple[str, ...]:
    # Console scripts are foreign too: a frame in `bin/horsies` does not help the user.
    installed = map(sysconfig.get_path, ("stdlib", "purelib", "platlib", "scripts"))
    directories = (str(Path(__file__).parent), *installed)
    return ("<", *(directory + os.sep for directory in directories))
