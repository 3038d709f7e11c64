"""What the process of an eval script may take of the machine; one that takes more is ended.

Nothing is refused: a script may catch that, and return another score than without our limits.
"""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass

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
