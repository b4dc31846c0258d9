"""The log lines of our commands: one format for people, one for machines."""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Literal, TypeAlias

LogFormat: TypeAlias = Literal["text", "json"]
TEXT_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
# Children read it: without capture they log as their worker does.
_VARIABLE = "HORSIES_LOG_SETUP"
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object per line; fields given by `extra=` are keys of their own."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def set_up_logging(level: str, log_format: LogFormat) -> None:
    """Log to stderr, in this process and in children started from here on."""
    os.environ[_VARIABLE] = f"{level} {log_format}"
    handler = logging.StreamHandler(sys.stderr)
    formatter = JsonFormatter() if log_format == "json" else logging.Formatter(TEXT_FORMAT)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler])


def log_as_parent() -> None:
    """Log as the process that started this one does, if that was set up by `set_up_logging`."""
    level, _, log_format = os.environ.get(_VARIABLE, "").partition(" ")
    if level:
        set_up_logging(level, "json" if log_format == "json" else "text")
