"""Processors and memory that this process may use: a container has fewer than its host."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_CONTAINER_MEMORY = Path("/sys/fs/cgroup/memory.max")


def processors() -> int:
    """Return how many processors this process may run on, at least one."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Return the machine's memory, or the container's limit where that is smaller."""
    machine_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # ``max`` is no number, and not every system has the file.
    with suppress(OSError, ValueError):
        return min(machine_bytes, int(_CONTAINER_MEMORY.read_text()))
    return machine_bytes
