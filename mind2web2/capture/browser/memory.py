"""How much memory a page's processes may have; past it the system refuses more, and the page crashes alone.

Bytes that arrive are no measure of it: a document of half a megabyte may unfold to gigabytes, and a script
needs none at all. Only Linux can limit processes that run already; elsewhere the browser's own bounds hold,
about 4 GB for scripts.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

log = logging.getLogger(__name__)

_PROCESSES = Path("/proc")


def limit_pages(browser_pid: int, max_bytes: int) -> None:
    """Limit the processes that a browser has for pages, and those that it will have, to so much each."""
    if sys.platform != "linux":
        return
    # Zygotes are what pages' processes are forked from, and take their limits from; first, lest one slip by.
    for kind in (b"--type=zygote", b"--type=renderer"):
        for pid in list(_descendants(browser_pid)):
            _limit_if(kind, pid, max_bytes)


def _limit_if(kind: bytes, pid: int, max_bytes: int) -> None:
    import resource

    assert sys.platform == "linux"
    try:
        # Such processes write over their arguments, with spaces between them.
        if kind in (_PROCESSES / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").split():
            # What is written to, such as heaps and stacks: of mere addresses a browser reserves terabytes.
            _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
            limit_bytes = max_bytes if hard == resource.RLIM_INFINITY else min(max_bytes, hard)
            resource.prlimit(pid, resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return
    except (OSError, ValueError) as error:
        log.warning("memory of pages not limited pid=%d reason=%s", pid, error)


def _descendants(pid: int) -> Iterator[int]:
    try:
        children = [
            int(child)
            for listing in (_PROCESSES / str(pid) / "task").glob("*/children")
            for child in listing.read_text(encoding="ascii").split()
        ]
    except OSError:
        return
    for child in children:
        yield child
        yield from _descendants(child)
