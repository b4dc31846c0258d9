"""The log lines of our commands: one format for people, one for machines."""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from horsies.visible import visible

LogFormat: TypeAlias = Literal["text", "json"]
TEXT_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
# Children read it: they log as their worker does.
_VARIABLE = "HORSIES_LOG_SETUP"
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_TASK_PREFIX = "horsies_"


class JsonFormatter(logging.Formatter):
    """One JSON object per line; fields given by `extra=` are keys of their own."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= _task_fields(record)
        line |= {
            key: value
            for key, value in vars(record).items()
            if key not in _STANDARD and not key.startswith(_TASK_PREFIX)
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return visible(json.dumps(line, default=str, ensure_ascii=False))


class TextFormatter(logging.Formatter):
    """Lines for people: what a record has beyond its first line is indented.

    A message or a traceback that holds a line break cannot pass for a record of its own, and what
    would act on a terminal is written out.
    """

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record)).replace("\n", "\n    ")


class ContextFormatter(TextFormatter):
    """Text lines; those that a task emits end with what they belong to."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        text, task = super().formatMessage(record), _task_fields(record)
        if not task:
            return text
        return (
            f"{text} [{task['task_name']} {task['task_id']}, attempt {task['attempt']}, "
            f"worker {task['worker_id']}]"
        )


def _task_fields(record: logging.LogRecord) -> dict[str, object]:
    """The task that emitted a record, see executors/log_records.py."""
    return {
        name: value
        for name in ("task_id", "task_name", "attempt", "worker_id")
        if (value := getattr(record, f"{_TASK_PREFIX}{name}", None)) is not None
    }


def set_up_logging(level: str, log_format: LogFormat, *, has_context: bool = False) -> None:
    """Log to stderr, in this process and in children started from here on."""
    os.environ[_VARIABLE] = f"{level} {log_format} {'context' if has_context else ''}"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(log_format, TEXT_FORMAT, has_context=has_context))
    handler.setLevel(level)
    logging.basicConfig(level=level, handlers=[handler])


def log_as_parent() -> None:
    """Log as the process that started this one does, if that was set up by `set_up_logging`."""
    level, log_format, has_context = _setup_of_parent()
    if level:
        set_up_logging(level, log_format, has_context=has_context)


def formatter_as_parent(line_format: str) -> logging.Formatter:
    """As the parent's lines; plain text has this format."""
    _, log_format, has_context = _setup_of_parent()
    return _formatter(log_format, line_format, has_context=has_context)


def _setup_of_parent() -> tuple[str, LogFormat, bool]:
    level, log_format, context = f"{os.environ.get(_VARIABLE, '')}  ".split(" ")[:3]
    return level, "json" if log_format == "json" else "text", context == "context"


def _formatter(log_format: LogFormat, line_format: str, *, has_context: bool) -> logging.Formatter:
    if log_format == "json":
        return JsonFormatter()
    return (ContextFormatter if has_context else TextFormatter)(line_format)
