"""The console that commands print to: what is printed is neither markup nor obeyed by a terminal."""

from __future__ import annotations

import os
from typing import IO, Any

from rich.console import Console
from rich.text import Text

from mind2web2.injection.invisible import made_visible


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
