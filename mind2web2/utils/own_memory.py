"""A process that holds keys: others of the same user read neither its memory nor its environment."""

from __future__ import annotations

import ctypes
import sys

# A constant of prctl(2).
_PR_SET_DUMPABLE = 4


def hide_memory() -> None:
    """Close ``/proc/PID/environ`` and ``mem`` of this process to others, on Linux.

    Root still reads them.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
