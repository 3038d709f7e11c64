"""Hide a process's memory and environment from others of the same user."""

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
