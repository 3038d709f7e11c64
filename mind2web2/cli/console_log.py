"""The package's log on the console: warnings in one line each, above a live display."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


class ConsoleHandler(logging.Handler):
    """Prints warnings and errors."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message on a line of its own."""
        text = " ".join(record.getMessage().split())
        self._console.print(f"{record.levelname.lower()}: {text}", soft_wrap=True)


@contextmanager
def warnings_on(console: Console) -> Iterator[None]:
    """Show the package's warnings on the console for the time of a run."""
    handler = ConsoleHandler(console)
    package = logging.getLogger("mind2web2")
    package.addHandler(handler)
    try:
        yield
    finally:
        package.removeHandler(handler)
