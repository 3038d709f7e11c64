"""Log records as text, as JSON, and on their way from one process to another."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from mind2web2.utils.invisible_text import make_visible

if TYPE_CHECKING:
    from mind2web2.utils.json_text import JsonObject

# Fields that every record has; any other was given with ``extra=``.
# Ray gives its field to the records of all loggers.
_RECORD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "_ray_timestamp_ns",
}


@dataclass(frozen=True)
class SentRecord:
    """A log record as it travels; the run writes when it came.

    Args:
        text: its message, with its arguments.
        trace: the traceback.
        extra: fields that were given with ``extra=``.
    """

    name: str
    level: int
    level_name: str
    text: str
    stack: str | None
    trace: str | None
    extra: dict[str, str]

    @classmethod
    def of(cls, record: logging.LogRecord) -> SentRecord:
        """Return a record as it travels; scripts may make records of their own, with any values."""
        extra = {name: str(value) for name, value in extra_fields(record).items()}
        return cls(
            str(record.name),
            record.levelno,
            str(record.levelname),
            message_of(record),
            record.stack_info,
            trace_of(record),
            extra,
        )

    def record(self) -> logging.LogRecord:
        """Return the record."""
        made = logging.LogRecord(
            self.name, self.level, "", 0, self.text, None, None, sinfo=self.stack
        )
        made.levelname = self.level_name
        made.exc_text = self.trace
        fields = vars(made)
        for name, value in self.extra.items():
            fields.setdefault(name, value)
        return made


def message_of(record: logging.LogRecord) -> str:
    """Return a record's message, without its format where the arguments do not fit."""
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # A script's "100% sure" with arguments: the line is worth more than its format.
        return f"{record.msg} {record.args!r}"


def trace_of(record: logging.LogRecord) -> str | None:
    """Return the traceback; a record from another process brings it as text."""
    if record.exc_info and record.exc_info[0] is not None:
        return logging.Formatter().formatException(record.exc_info)
    return record.exc_text


def extra_fields(record: logging.LogRecord) -> JsonObject:
    """Return the fields that were given with ``extra=``."""
    return {name: value for name, value in vars(record).items() if name not in _RECORD_FIELDS}


class TextFormatter(logging.Formatter):
    """Readable lines.

    Text after a line break is indented, so that no page text can pose as a line.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's lines."""
        when = datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M:%S")
        text = f"{when} {record.levelname:<7} {record.name}: {message_of(record)}"
        if (trace := trace_of(record)) is not None:
            text += "\n" + trace
        if record.stack_info:
            text += "\n" + record.stack_info
        return make_visible("\n    ".join(text.splitlines()))


class LineFormatter(logging.Formatter):
    """One line for whatever happened; the traceback is in the files."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        self._where = "/".join(fields.values())

    def format(self, record: logging.LogRecord) -> str:
        """Return the record on one line."""
        text = f"{record.levelname.lower()} {self._where or record.name}: {message_of(record)}"
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text += f" ({type(error).__name__}: {error})"
        elif record.exc_text:
            text += f" ({record.exc_text.splitlines()[-1]})"
        return make_visible(" ".join(text.split()))


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        entry = {
            "time": datetime.fromtimestamp(record.created)
            .astimezone()
            .isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": message_of(record),
        }
        if (trace := trace_of(record)) is not None:
            entry["exception"] = trace
        # The first mention of a key fixes its place, the last one its value: no extra can pose as
        # ours.
        return _json_line({**entry, **extra_fields(record), **self._fields, **entry})


def _json_line(entry: JsonObject) -> str:
    try:
        return json.dumps(entry, default=str)
    except (TypeError, ValueError):
        # Keys that are not text, or a structure that contains itself.
        return json.dumps({name: str(value) for name, value in entry.items()})
