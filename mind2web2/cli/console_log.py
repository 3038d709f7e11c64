"""The package's log: warnings in one line each on standard error, above a live display if there is one."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console

from mind2web2.cli.plain_console import plain_console

_ALIKE_EVERY_S = 10.0


class ConsoleHandler(logging.Handler):
    """Prints warnings and errors.

    A warning that comes once for each of many requests has ``alike`` (``extra=``), which says what it has in
    common with the others: of those one in ten seconds is printed, and says how many there were meanwhile.

    Args:
        console: has the display that they must not tear, where both are on a terminal.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        is_shared = console.is_terminal and sys.stderr.isatty()
        self._console = console if is_shared else plain_console(file=sys.stderr, outlives_reader=True)
        self._alike: dict[str, _Alike] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message on a line of its own."""
        alike = getattr(record, "alike", None)
        held_back = 0 if alike is None else self._held_back(alike, record.created)
        if held_back is None:
            return
        text = " ".join(record.getMessage().split())
        text += f" ({held_back} more like it meanwhile)" if held_back else ""
        self._console.print(f"{record.levelname.lower()}: {text}", soft_wrap=True)

    def _held_back(self, alike: str, now_s: float) -> int | None:
        """Return how many such warnings were held back since the last one; ``None`` to hold this one back."""
        state = self._alike.setdefault(alike, _Alike())
        if now_s < state.next_shown_s:
            state.held_back += 1
            return None
        self._alike[alike] = _Alike(now_s + _ALIKE_EVERY_S)
        return state.held_back


@dataclass(slots=True)
class _Alike:
    """Warnings of one kind: when the next one is shown, in seconds of the epoch, and what came too soon."""

    next_shown_s: float = 0.0
    held_back: int = 0


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
