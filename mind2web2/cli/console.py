"""The console that commands print to: lines, warnings and tables of amounts."""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from mind2web2.cli.event_loop import run_to_exit
from mind2web2.utils.invisible_text import make_visible

_ALIKE_EVERY_S = 10.0
# For the titles of narrow tables.
_LEAST_WIDTH = 46
# Columns for a table in a file or pipe: rich assumes 80, which would break names.
_PIPED_WIDTH = 120


class PlainConsole(Console):
    """A console without rich's markup, so that names and reasons are shown as they are.

    It shows control characters of pages and answers instead of obeying them.

    Args:
        file: standard output by default.
        outlives_reader: when the reader has gone, continue without output instead of raising
            BrokenPipeError.
        options: further ones of rich's console.
    """

    def __init__(
        self, file: IO[str] | None = None, *, outlives_reader: bool = False, **options: Any
    ) -> None:
        super().__init__(file=file, markup=False, emoji=False, highlight=False, **options)
        self._outlives_reader = outlives_reader

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text to print, with invisible characters made visible."""
        return super().render_str(make_visible(text), **options)

    def on_broken_pipe(self) -> None:
        """Print nothing more once the reader has gone, as ``head`` does."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)
        if not self._outlives_reader:
            raise BrokenPipeError

    def print_line(self, text: str) -> None:
        """Print a line that terminals may wrap, but that stays one where it is copied."""
        self.print(text, soft_wrap=True)

    def print_lines(self, lines: Iterable[object], before: str = "") -> None:
        """Print each line as ``print_line`` does, behind words such as ``Warning: ``."""
        for line in lines:
            self.print_line(f"{before}{line}")

    def print_table(
        self,
        title: str,
        headings: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        texts: Collection[str] = (),
        caption: str | None = None,
    ) -> None:
        """Print rows of cells; only the first column and those named as texts are to the left."""
        table = Table(title=title, caption=caption, min_width=_LEAST_WIDTH)
        for heading in headings:
            is_text = heading == headings[0] or heading in texts
            table.add_column(
                heading,
                justify="left" if is_text else "right",
                overflow="fold",
            )
        for row in rows:
            table.add_row(*row)
        shown_on = self
        if not self.is_terminal:
            width = max(self.width, _PIPED_WIDTH)
            shown_on = PlainConsole(self.file, outlives_reader=self._outlives_reader, width=width)
        shown_on.print(table)

    def run(self, main: Coroutine[Any, Any, int], stopped: str) -> int:
        """Run a command's coroutine and return its exit status, 130 after Ctrl-C or SIGTERM.

        Args:
            stopped: is printed once such a signal has stopped it.
        """
        return run_to_exit(main, lambda: self.print_line(stopped))

    @contextmanager
    def show_progress(
        self, what: str, total: int, *, is_quiet: bool = False
    ) -> Iterator[Callable[[], object]]:
        """Show on a terminal how many are done; each call of what is yielded adds one."""
        columns = (TextColumn(what), MofNCompleteColumn())
        is_hidden = is_quiet or not self.is_terminal
        with Progress(*columns, console=self, transient=True, disable=is_hidden) as bar:
            task = bar.add_task("", total=total)
            yield lambda: bar.advance(task)

    @contextmanager
    def show_warnings(self) -> Iterator[None]:
        """Show the package's warnings for the time of a run."""
        handler = ConsoleHandler(self)
        package = logging.getLogger("mind2web2")
        package.addHandler(handler)
        try:
            yield
        finally:
            package.removeHandler(handler)


class ConsoleHandler(logging.Handler):
    """Prints warnings and errors, each text once.

    Many requests may give the same warning, marked by a common ``alike`` (``extra=``). It prints
    one of these in ten seconds, with the number of those left out.

    Args:
        console: of the live display, which log lines must not break where both are on a terminal.
    """

    def __init__(self, console: PlainConsole) -> None:
        super().__init__(logging.WARNING)
        is_shared = console.is_terminal and sys.stderr.isatty()
        self._console = (
            console if is_shared else PlainConsole(file=sys.stderr, outlives_reader=True)
        )
        self._printed: set[str] = set()
        # By kind: when the next warning is shown, in seconds of the epoch, and how many were left
        # out.
        self._next_shown_s: dict[str, float] = {}
        self._left_out: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message on a line of its own."""
        alike = getattr(record, "alike", None)
        text = " ".join(record.getMessage().split())
        if alike is None and text in self._printed:
            return
        if alike is not None and record.created < self._next_shown_s.get(alike, 0.0):
            self._left_out[alike] += 1
            return
        self._printed.add(text)
        if alike is not None:
            self._next_shown_s[alike] = record.created + _ALIKE_EVERY_S
            if left_out := self._left_out.pop(alike, 0):
                text += f" ({left_out} more like it in between)"
        self._console.print_line(f"{record.levelname.lower()}: {text}")
