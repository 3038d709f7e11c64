"""The package's log: warnings in one line each on standard error, above a live display if there is one."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from mind2web2.cli.plain_console import plain_console


class ConsoleHandler(logging.Handler):
    """Prints warnings and errors.

    Args:
        console: has the display that they must not tear, where both are on a terminal.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        is_shared = console.is_terminal and sys.stderr.isatty()
        self._console = console if is_shared else plain_console(file=sys.stderr, outlives_reader=True)

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message on a line of its own."""
        text = " ".join(record.getMessage().split())
        self._console.print(f"{record.levelname.lower()}: {text}", soft_wrap=True)


@contextmanager
def warnings_on(console: Console) -> Iterator[None]:
    """Show the package's warnings for the time of a run."""
    handler = ConsoleHandler(console)
    package = logging.getLogger("mind2web2")
    package.addHandler(handler)
    try:
        yield
    finally:
        package.removeHandler(handler)
