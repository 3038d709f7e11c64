"""Memory of scripts' processes, watched from outside: one that takes too much is ended, and nothing refused.

A refused allocation is an error that a script, or a library that it uses, may catch: its score would then be
another than without the limit, and nobody would know.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

# A script that fills memory as fast as the machine can takes some 100 MB more in between.
LOOK_EVERY_S = 0.05
# Few scripts start processes, and to find those is more work.
_LOOKS_A_SEARCH = 20
_PROC = Path("/proc")
# Memory that is no copy of a file: the process's own, what it shares with others, what is swapped out.
_COUNTED = ("RssAnon:", "RssShmem:", "VmSwap:")

IS_POSSIBLE = sys.platform == "linux"


class MemoryWatch:
    """Tells which processes of scripts take more than they may, also by a process that they have started."""

    def __init__(self) -> None:
        self._looks = 0

    def too_large(self, limits_bytes: Mapping[int, int]) -> list[int]:
        """Return those processes.

        Args:
            limits_bytes: by the number of the script's process; for each process of a script.
        """
        found = {pid for pid, limit in limits_bytes.items() if memory_taken(pid) > limit}
        self._looks += 1
        if self._looks % _LOOKS_A_SEARCH == 0:
            for pid, script in _started_by(limits_bytes):
                if memory_taken(pid) > limits_bytes[script]:
                    found.add(script)
        return sorted(found)


def memory_taken(pid: int) -> int:
    """Return how many bytes of memory a process takes; 0 for one that has ended."""
    try:
        lines = (_PROC / str(pid) / "status").read_text(errors="replace").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_COUNTED))


def parent_of(folder: Path) -> int | None:
    """Return the parent of the process that a folder of ``/proc`` is of; ``None`` for one that has ended."""
    with suppress(OSError):
        # The name, in parentheses, may have spaces of its own.
        return int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return None


def processes() -> Iterator[Path]:
    """Yield the folders of all processes."""
    return _PROC.glob("[0-9]*")


def _started_by(scripts: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield each process below those of scripts, with the script's."""
    known = set(scripts)
    parents = {int(folder.name): parent_of(folder) for folder in processes()}
    for pid, parent in parents.items():
        above = parent
        for _ in parents:  # numbers that were given anew meanwhile might lead in a circle
            if above is None or above in known:
                break
            above = parents.get(above)
        if above in known and above is not None:
            yield pid, above
