"""The console that commands print to, the package's warnings on it, and tables of amounts."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from mind2web2.utils.invisible_characters import made_visible

_ALIKE_EVERY_S = 10.0


class _PlainConsole(Console):
    """A console to which no page and no answer can send the escapes that terminals obey."""

    outlives_reader = False

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text to print, what is invisible in it made visible."""
        return super().render_str(made_visible(text), **options)

    def on_broken_pipe(self) -> None:
        """Say nothing more once the reader has gone, as ``head`` does; only work for files goes on."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)
        if not self.outlives_reader:
            raise BrokenPipeError


def plain_console(file: IO[str] | None = None, *, outlives_reader: bool = False) -> Console:
    """Return the console; names and reasons are shown as they are, whatever they look like to rich.

    Args:
        file: standard output by default.
        outlives_reader: go on in silence when nobody reads any more: what is done is not for the console.

    Raises:
        BrokenPipeError: while printing, unless it outlives its reader.
    """
    console = _PlainConsole(file=file, markup=False, emoji=False, highlight=False)
    console.outlives_reader = outlives_reader
    return console


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
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message on a line of its own, the same one only once."""
        alike = getattr(record, "alike", None)
        held_back = 0 if alike is None else self._held_back(alike, record.created)
        if held_back is None:
            return
        text = " ".join(record.getMessage().split())
        if alike is None and text in self._printed:
            return
        self._printed.add(text)
        text += f" ({held_back} more like it in between)" if held_back else ""
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


def print_amounts(
    console: Console, title: str, kind: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]
) -> None:
    """Print rows of amounts by name, ``kind`` being the heading of the names.

    A table that is too wide for its terminal would have its words broken: each name is then a line.
    """
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(kind, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, cells in rows.items():
        table.add_row(name, *cells)
    unbounded = console.options.update(max_width=10_000)
    if not console.is_terminal or Measurement.get(console, unbounded, table).maximum > console.width:
        for name, cells in rows.items():
            amounts = ", ".join(f"{column} {cell}" for column, cell in zip(columns, cells, strict=True))
            console.print(f"{title}: {name}: {amounts}", soft_wrap=True)
        return
    console.print(table)
