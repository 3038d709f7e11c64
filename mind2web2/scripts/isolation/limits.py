"""Limits on memory, processor time and files of a script's process; a process that exceeds them is killed.

Allocations do not fail at the limit: a script might catch the error and return another score.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

if sys.platform != "win32":
    import resource

# Real scripts take a few seconds of processor time and less than 100 MB, most of it for Python itself.
DEFAULT_MEMORY_BYTES = 1024**3
DEFAULT_PROCESSOR_S = 600
# No script writes files of such a size; a disk that is full costs every answer of the run.
MAX_FILE_BYTES = 1024**3
_CPU_GRACE_S = 5


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """Limits for one answer's evaluation.

    Args:
        memory_bytes: of the process, and of each process that it starts (``MemoryWatch``, on Linux).
        processor_s: seconds of processor time, likewise.
        block_s: a script that blocks the event loop for so long is interrupted.
        silence_s: a process that sends nothing for so long, because it cannot be interrupted, is killed.
    """

    memory_bytes: int = DEFAULT_MEMORY_BYTES
    processor_s: int = DEFAULT_PROCESSOR_S
    block_s: float = 60.0
    silence_s: float = 90.0

    @property
    def last_processor_s(self) -> int:
        """Return after how much processor time a process is killed that ignores SIGXCPU."""
        return self.processor_s + _CPU_GRACE_S

    def apply_to_this_process(self) -> None:
        """Set the system's limits for this process and for all that it starts."""
        # First the signal that names the reason, then SIGKILL.
        _lower(resource.RLIMIT_CPU, self.processor_s, self.last_processor_s)
        _lower(resource.RLIMIT_FSIZE, MAX_FILE_BYTES)
        # Python ignores it, so that the write raises an error that a script may catch.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        # A core file would take hundreds of megabytes.
        _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, limit: int, last_limit: int | None = None) -> None:
    wanted = limit if last_limit is None else last_limit
    _, hard_limit = resource.getrlimit(kind)
    if hard_limit == resource.RLIM_INFINITY or hard_limit > wanted:
        resource.setrlimit(kind, (limit, wanted))


# A script that fills memory as fast as the machine can takes some 100 MB more in between.
CHECK_EVERY_S = 0.05
# Few scripts start processes, and finding those reads the whole process table.
_CHECKS_PER_GROUP_CHECK = 20
_PROC = Path("/proc")
# Memory that is no copy of a file: the process's own, shared memory, swapped out memory.
_COUNTED = ("RssAnon:", "RssShmem:", "VmSwap:")

CAN_WATCH_MEMORY = sys.platform == "linux"


class MemoryWatch:
    """Finds scripts' processes that take more memory than they may, or start a process that does."""

    def __init__(self) -> None:
        self._checks = 0

    def too_large(self, limits_bytes: Mapping[int, int]) -> set[int]:
        """Return those processes.

        Args:
            limits_bytes: by process id of the script; for the process and each process of its group.
        """
        found = {pid for pid, limit in limits_bytes.items() if memory_taken(pid) > limit}
        self._checks += 1
        if self._checks % _CHECKS_PER_GROUP_CHECK == 0:
            for folder in _PROC.glob("[0-9]*"):
                group = _group_of(folder)
                if group in limits_bytes and memory_taken(int(folder.name)) > limits_bytes[group]:
                    found.add(group)
        return found


def memory_taken(pid: int) -> int:
    """Return how many bytes of memory a process takes; 0 for one that has ended."""
    try:
        lines = (_PROC / str(pid) / "status").read_text(errors="replace").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_COUNTED))


def _group_of(folder: Path) -> int:
    """Return the process group of a process's folder; 0 for a process that has ended."""
    with suppress(OSError):
        # The name, in parentheses, may contain spaces.
        return int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[2])
    return 0
