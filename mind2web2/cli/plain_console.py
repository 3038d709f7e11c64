"""The console that commands print to: what is printed is neither markup nor obeyed by a terminal."""

from __future__ import annotations

import os
from typing import IO, Any

from rich.console import Console
from rich.text import Text

from mind2web2.injection.invisible import made_visible


class _PlainConsole(Console):
    """A console to which no page and no answer can send the escapes that terminals obey."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text to print, what is invisible in it made visible."""
        return super().render_str(made_visible(text), **options)

    def on_broken_pipe(self) -> None:
        """Go on in silence when the reader has gone, as ``head`` does: the work is not for the console."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def plain_console(file: IO[str] | None = None) -> Console:
    """Return the console; names and reasons are shown as they are, whatever they look like to rich.

    Args:
        file: standard output by default.
    """
    return _PlainConsole(file=file, markup=False, emoji=False, highlight=False)
