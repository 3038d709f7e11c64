"""Loggers for one answer each: a file to read, a file to parse, and warnings on the console."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mind2web2.errors import ResultWriteError
from mind2web2.utils.log_records import JsonFormatter, LineFormatter, TextFormatter
from mind2web2.utils.names import stamp_now


def create_logger(
    lgr_nm: str,
    log_folder: str | Path,
    enable_console: bool = True,
    *,
    context: Mapping[str, str] | None = None,
    level: int = logging.DEBUG,
    console_level: int = logging.WARNING,
) -> tuple[logging.Logger, str]:
    """Return a logger that writes ``<stamp>_<name>.log`` and ``.jsonl``, and its stamp.

    The logger is not registered: it passes nothing to the root logger, and neither it nor the
    loggers derived from it stay behind in ``logging``'s registry.

    Args:
        lgr_nm: the logger's name; a second one of that name in the same second gets files of its
            own.
        log_folder: made where missing.
        enable_console: show warnings and errors on standard error, one line each.
        console_level: the least level shown there; below warnings it shows all that the ``.log``
            has.
        context: fields such as task and answer, put into every line of the ``.jsonl`` and on the
            console.
        level: the least level that reaches the files.

    Raises:
        ResultWriteError: the log files cannot be written.
    """
    stamp = stamp_now()
    fields = dict(context or {})
    handlers: list[logging.Handler] = list(_open_files(Path(log_folder), stamp, lgr_nm, fields))
    if enable_console:
        handlers.append(_ConsoleHandler(fields, console_level))
    logger = _private_logger(lgr_nm)
    logger.setLevel(level)
    for handler in handlers:
        logger.addHandler(handler)
    return logger, stamp


def create_sub_logger(parent_logger: logging.Logger, sub_name: str) -> logging.Logger:
    """Return a logger ``<parent_logger>.<sub_name>`` that uses its parent's handlers."""
    return parent_logger.getChild(sub_name)


def cleanup_logger(logger: logging.Logger) -> None:
    """Close and remove the handlers of a logger; loggers derived from it fall silent with it."""
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


def _private_logger(name: str) -> logging.Logger:
    # A manager of its own keeps getChild() working without an entry in the registry, which never
    # shrinks.
    manager = logging.Manager(logging.RootLogger(logging.DEBUG))
    logger = manager.getLogger(name)
    logger.propagate = False
    return logger


def _open_files(
    folder: Path, stamp: str, name: str, fields: dict[str, str]
) -> tuple[logging.FileHandler, logging.FileHandler]:
    with ResultWriteError.unable_to(f"write logs under {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        to_read = _open_new(folder, f"{stamp}_{_file_stem(name)}")
        try:
            # The .log was opened as a new file, so that its name is ours for the .jsonl as well.
            to_parse = LogFile(Path(to_read.baseFilename).with_suffix(".jsonl"), mode="w")
        except OSError:
            to_read.close()
            raise
    to_read.setFormatter(TextFormatter())
    to_parse.setFormatter(JsonFormatter(fields))
    return to_read, to_parse


def _open_new(folder: Path, stem: str) -> logging.FileHandler:
    number = 1
    while True:
        suffix = "" if number == 1 else f"_{number}"
        try:
            return LogFile(folder / f"{stem}{suffix}.log", mode="x")
        except FileExistsError:
            number += 1


class LogFile(logging.FileHandler):
    """A log file; where it cannot be written any more, a line on standard error says so, once.

    Its lines are lost then, and nothing else: writing a result reports a full disk.
    """

    def __init__(self, path: Path, mode: str = "a") -> None:
        # Pages bring lone surrogates along: a line with one must not be lost.
        super().__init__(path, mode=mode, encoding="utf-8", errors="backslashreplace")
        self._is_broken = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the base class's name)
        """Report an error of the disk once, and an error of the record as usual."""
        error = sys.exception()
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._is_broken:
            self._is_broken = True
            sys.stderr.write(
                f"warning: cannot write the log {self.baseFilename}: {error.strerror}\n"
            )

    def close(self) -> None:
        """Close the file, also where the last lines cannot be written."""
        with suppress(OSError):
            super().close()


def _file_stem(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)[:50].strip(".") or "log"


class _ConsoleHandler(logging.Handler):
    """Standard error: warnings in one line each, or on request the whole story."""

    def __init__(self, fields: Mapping[str, str], level: int) -> None:
        super().__init__(level)
        self.setFormatter(LineFormatter(fields) if level >= logging.WARNING else TextFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            # Looked up each time: a live display replaces standard error while it is on.
            sys.stderr.write(f"{self.format(record)}\n")
        except (OSError, ValueError):
            self.handleError(record)
