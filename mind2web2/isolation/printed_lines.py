"""What a script's process prints, with all that it starts: lines in its answer's log."""

from __future__ import annotations

import asyncio
import logging

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
