"""Processors and memory that this process may use: a container has fewer than its host."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


def processors() -> int:
    """Return how many processors the affinity and the container's quota leave, at least one."""
    count = os.cpu_count() or 1
    if sys.platform == "linux":
        count = len(os.sched_getaffinity(0))
    return max(1, min([count, *map(math.ceil, _processor_quotas())]))


def memory_bytes() -> int:
    """Return the machine's memory, or the container's limit where that is smaller."""
    machine_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [
        int(text)
        for name in ("memory.max", "memory.limit_in_bytes")
        for text in _settings("memory", name)
        if text.isdigit()
    ]
    return min([machine_bytes, *limits])


def _processor_quotas() -> Iterator[float]:
    """Return processors per period, of each group that has a quota."""
    for text in _settings("cpu", "cpu.max"):
        quota, period = text.split()
        if quota != "max":
            yield int(quota) / int(period)
    quotas = _settings("cpu", "cpu.cfs_quota_us")
    periods = _settings("cpu", "cpu.cfs_period_us")
    for quota, period in zip(quotas, periods, strict=True):
        if int(quota) > 0:
            yield int(quota) / int(period)


def _settings(controller: str, name: str) -> list[str]:
    """Return a setting of this process's control group and of all above it."""
    found = []
    for line in _text(_OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = _CGROUPS / controllers
        group = root / path.lstrip("/")
        # A container may not see its own group by that path, but the root shows it.
        for folder in (group, *group.parents):
            if folder.is_relative_to(root):
                found.append(_text(folder / name))
    return [text for text in found if text]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
