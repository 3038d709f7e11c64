"""Memory and processor time of this process and everything it has started, as Linux counts them."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

PROC = Path("/proc")
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
KIB = 1024


def family() -> list[Path]:
    """Return the /proc folders of this process and its descendants."""
    children: dict[int, list[int]] = {}
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            parent = _parent(folder)
            if parent is not None:
                children.setdefault(parent, []).append(int(folder.name))
    found, waiting = [], [os.getpid()]
    while waiting:
        process = waiting.pop()
        found.append(PROC / str(process))
        waiting += children.get(process, [])
    return found


def memory_bytes() -> int:
    """Return the family's proportional set size: memory that several share counts once."""
    return sum(pss_bytes(folder) for folder in family())


def processor_s() -> float:
    """Return the processor time of the family, members that have ended included."""
    return sum(_processor_s(folder) for folder in family())


class PeakMemory:
    """Watches the family's memory while its ``with`` block runs."""

    def __init__(self, every_s: float = 0.5) -> None:
        self.samples_bytes: list[int] = []
        self._every_s = every_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    @property
    def peak_bytes(self) -> int:
        """The largest that was seen."""
        return max(self.samples_bytes)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.samples_bytes.append(memory_bytes())
            if self._done.wait(self._every_s):
                return


def _parent(folder: Path) -> int | None:
    fields = _stat_fields(folder)
    return int(fields[1]) if fields else None


def _processor_s(folder: Path) -> float:
    fields = _stat_fields(folder)
    # Its own in user and kernel mode, and that of the children it has waited for.
    return sum(map(int, fields[11:15])) / TICKS_A_SECOND


def _stat_fields(folder: Path) -> list[str]:
    try:
        # The name, in parentheses, may have spaces of its own.
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def pss_bytes(folder: Path) -> int:
    """Return the proportional set size of a process, 0 for one that has ended."""
    try:
        lines = (folder / "smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * KIB for line in lines if line.startswith("Pss:"))
