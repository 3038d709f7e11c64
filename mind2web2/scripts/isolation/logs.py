"""Log records of a script's process, carried over to the logs of the run."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from typing import Any

from mind2web2.scripts.isolation.rpc import Message

# Of one message; an answer's whole log is bounded where its script runs.
_MAX_CHARS = 1024**2
# Times beyond (the year 9999), and what is no number, cannot be shown.
_END_OF_TIME_S = 253_402_300_800
# Whose records these are, and the beginning of its loggers' names.
PACKAGE = "mind2web2"

# What every record has; anything else was given with ``extra=``.
_RECORD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class RelayHandler(logging.Handler):
    """Sends records to the run, from the process of a script.

    Args:
        note: sends a message.
        to: whose records these are: the answer's or the package's.
    """

    def __init__(self, note: Callable[..., None], to: str) -> None:
        super().__init__()
        self._note = note
        self._to = to

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record, with its traceback as text."""
        try:
            extra = {name: value for name, value in vars(record).items() if name not in _RECORD_FIELDS}
            self._note(
                "log",
                to=self._to,
                name=record.name,
                level=record.levelno,
                text=_shortened(_message(record)),
                created=record.created,
                trace=_trace(record),
                stack=record.stack_info,
                extra={name: _shortened(str(value)) for name, value in extra.items()},
            )
        except (ValueError, TypeError, RecursionError):
            self.handleError(record)


class LogRelay:
    """Hands a process's records to the loggers of the run.

    Args:
        logger: the answer's.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def take(self, message: Message) -> None:
        """Log what a process has logged."""
        text = str(message["text"])
        is_package = message["to"] == PACKAGE
        # A name of the script's making gets no logger of its own: the registry never shrinks.
        name = str(message["name"])
        is_known = name in logging.Logger.manager.loggerDict and name.startswith(f"{PACKAGE}.")
        logger = logging.getLogger(name if is_known else PACKAGE) if is_package else self._logger
        level = int(message["level"])
        if logger.isEnabledFor(level):
            logger.handle(_record(message, name, level, text))


def _record(message: Message, name: str, level: int, text: str) -> logging.LogRecord:
    record = logging.LogRecord(name, level, "", 0, "%s", (text,), None)
    created_s = float(message["created"])
    if 0 <= created_s < _END_OF_TIME_S:
        record.created, record.msecs = created_s, created_s % 1 * 1000
    record.exc_text = None if message["trace"] is None else str(message["trace"])
    record.stack_info = None if message["stack"] is None else str(message["stack"])
    extra: dict[str, Any] = dict(message["extra"])
    vars(record).update({name: value for name, value in extra.items() if not _is_taken(name)})
    return record


def _is_taken(name: str) -> bool:
    return name in _RECORD_FIELDS or hasattr(logging.LogRecord, name)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # A script's "100% sure" with arguments: the line is worth more than its format.
        return f"{record.msg} {record.args!r}"


def _trace(record: logging.LogRecord) -> str | None:
    if record.exc_info and record.exc_info[0] is not None:
        return _shortened("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
    return record.exc_text


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]} [... cut]"


_PRINTED_BYTES = 1024**2
_LONGEST_LINE = 10_000


async def log_printed(output: asyncio.StreamReader, logger: logging.Logger) -> None:
    """Log what a process prints, line by line, up to an amount that no display could show either."""
    printed_bytes, rest = 0, b""
    while piece := await output.read(_LONGEST_LINE):
        printed_bytes += len(piece)
        if printed_bytes > _PRINTED_BYTES:
            if printed_bytes - len(piece) <= _PRINTED_BYTES:
                logger.warning("script prints more than %d bytes; the rest is left out", _PRINTED_BYTES)
            continue
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        for line in lines:
            logger.info("script printed: %s", line.decode(errors="replace"))
    if rest and printed_bytes <= _PRINTED_BYTES:
        logger.info("script printed: %s", rest.decode(errors="replace"))
