"""What the process of an eval script may take of the machine; one that takes more is ended.

Nothing is refused: a script may catch that, and return another score than without our limits.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
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
        memory_bytes: of the process, and of each process that it starts (``memory_watch``, on Linux).
        processor_s: seconds of processor time, likewise.
        block_s: a script that lets nothing else run for so long is interrupted.
        silence_s: a process of which nothing is heard for so long, since it cannot even be interrupted, is
            ended.
    """

    memory_bytes: int = DEFAULT_MEMORY_BYTES
    processor_s: int = DEFAULT_PROCESSOR_S
    block_s: float = 60.0
    silence_s: float = 90.0

    @property
    def last_processor_s(self) -> int:
        """Return after how much processor time a process is killed that has withstood the signal."""
        return self.processor_s + _CPU_GRACE_S

    def hold_this_process(self) -> None:
        """Have the system hold this process, and all that it starts, to what it looks after itself."""
        # First the signal that says why, then the one that nothing withstands.
        _lower(resource.RLIMIT_CPU, self.processor_s, self.last_processor_s)
        _lower(resource.RLIMIT_FSIZE, MAX_FILE_BYTES)
        # Which Python turns into an error that a script may catch.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        # A crash is told in a line; its core would be hundreds of megabytes.
        _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, limit: int, last_limit: int | None = None) -> None:
    wanted = limit if last_limit is None else last_limit
    _, hard_limit = resource.getrlimit(kind)
    if hard_limit == resource.RLIM_INFINITY or hard_limit > wanted:
        resource.setrlimit(kind, (limit, wanted))


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
