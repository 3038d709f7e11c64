"""What a script's process prints: into the answer's log, up to a megabyte."""

from __future__ import annotations

import logging
from dataclasses import dataclass

# Of captured output.
_PRINTED_BYTES = 1024**2
_LONGEST_LINE = 10_000


@dataclass
class PrintedLines:
    """Logs printed text line by line.

    Args:
        logger: of the answer.
    """

    logger: logging.Logger
    _count: int = 0
    _rest: bytes = b""

    def add(self, piece: bytes) -> None:
        """Log the lines that a piece of text ends."""
        before, self._count = self._count, self._count + len(piece)
        if self._count > _PRINTED_BYTES:
            if before <= _PRINTED_BYTES:
                self.logger.warning(
                    "script prints more than %d bytes; the rest is left out",
                    _PRINTED_BYTES,
                )
            return
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._log(line)

    def end(self) -> None:
        """Log the last line."""
        if self._rest and self._count <= _PRINTED_BYTES:
            self._log(self._rest)

    def _log(self, line: bytes) -> None:
        self.logger.info("script printed: %s", line.decode(errors="replace"))
