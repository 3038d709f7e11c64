"""The fork server: a process with the package loaded, which forks a process for each script in milliseconds.

It runs no script itself, and has no API keys, threads or event loop. Each script's process has a *liveness
socket*: the fork server reports on it that the process started and how it ended; once the run closes its end,
or dies, the fork server kills the process.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

if sys.platform != "win32":
    import resource

# Real scripts take a few seconds of processor time and less than 100 MB, most of it for Python itself.
DEFAULT_MEMORY_BYTES = 1024**3
DEFAULT_PROCESSOR_S = 600
# No script writes files of such a size; a disk that is full costs every answer of the run.
MAX_FILE_BYTES = 1024**3
_CPU_GRACE_S = 5
# A script that fills memory as fast as the machine can takes some 100 MB more in between.
_CHECK_EVERY_S = 0.05
# Memory that is no copy of a file: the process's own, shared memory, swapped out memory.
_COUNTED = ("RssAnon:", "RssShmem:", "VmSwap:")
# Far more than this process ever opens; the system's own limit may be astronomic.
_MOST_FILES = 65_536
# Of a process that faulthandler ends.
HANG_STATUS = 1
# Sent along with each request: connection, output, liveness socket.
FDS_PER_START = 3
# A request for a process: its memory limit in bytes.
START = struct.Struct(">Q")
# Reported with the end of a process that exceeded its memory limit.
TOO_LARGE = "memory"


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """Limits for one answer's evaluation; a process that exceeds one is killed.

    Args:
        memory_bytes: of the process, on Linux. Allocations do not fail at the limit: a script might catch the
            error and return another score.
        processor_s: seconds of processor time.
        block_s: a script that blocks the event loop for so long is interrupted.
        hang_s: the process exits if a call that cannot be interrupted blocks the event loop for so long.
    """

    memory_bytes: int = DEFAULT_MEMORY_BYTES
    processor_s: int = DEFAULT_PROCESSOR_S
    block_s: float = 60.0
    hang_s: float = 90.0

    @property
    def last_processor_s(self) -> int:
        """Return after how much processor time a process is killed that ignores SIGXCPU."""
        return self.processor_s + _CPU_GRACE_S

    def apply_to_this_process(self) -> None:
        """Set the system's limits for this process and for all that it starts."""
        # First the signal that names the reason, then SIGKILL.
        _lower(resource.RLIMIT_CPU, self.processor_s, self.last_processor_s)
        _lower(resource.RLIMIT_FSIZE, MAX_FILE_BYTES, MAX_FILE_BYTES)
        # Python ignores it, so that the write raises an error that a script may catch.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        # A core file would take hundreds of megabytes.
        _lower(resource.RLIMIT_CORE, 0, 0)


def _lower(kind: int, limit: int, last_limit: int) -> None:
    _, hard_limit = resource.getrlimit(kind)
    if hard_limit == resource.RLIM_INFINITY or hard_limit > last_limit:
        resource.setrlimit(kind, (limit, last_limit))


class ForkLoop:
    """Starts a process for each request, until the run closes the control socket.

    Args:
        run_script: called in the new process with the descriptor of its connection to the run.
    """

    def __init__(self, control: socket.socket, run_script: Callable[[int], None]) -> None:
        self._control = control
        self._call_script = run_script
        self._liveness: dict[int, socket.socket] = {}
        self._memory_limits: dict[int, int] = {}
        self._too_large: set[int] = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._wake, self._wake_end = socket.socketpair()
        for end in (self._wake, self._wake_end):
            end.setblocking(False)
        self._selector.register(self._wake, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._wake_end.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        """Serve until the other end of the control socket is closed."""
        next_check_s = 0.0
        while True:
            ready = self._selector.select(_CHECK_EVERY_S if self._memory_limits else None)
            if time.monotonic() >= next_check_s:
                self._kill_too_large()
                next_check_s = time.monotonic() + _CHECK_EVERY_S
            for key, _ in ready:
                if key.fileobj is self._wake:
                    self._reap()
                elif key.fileobj is not self._control:
                    self._close_liveness(key.data)
                elif not self._start_one():
                    self._kill_all()
                    return

    def _start_one(self) -> bool:
        """Start the requested process; ``False`` where the run has closed the control socket."""
        try:
            request, fds, _, _ = socket.recv_fds(self._control, START.size, FDS_PER_START)
        except ConnectionError:
            return False
        if not request:
            return False
        connection_fd, output_fd, liveness_fd = fds
        liveness = socket.socket(fileno=liveness_fd)
        try:
            pid = os.fork()
        except OSError as error:
            _report(liveness, f"failed {error.strerror}")
            liveness.close()
        else:
            if pid == 0:
                self._run_script(connection_fd, output_fd)
            self._liveness[pid] = liveness
            [self._memory_limits[pid]] = START.unpack(request)
            self._selector.register(liveness, selectors.EVENT_READ, pid)
            _report(liveness, f"started {pid}")
        os.close(connection_fd)
        os.close(output_fd)
        return True

    def _run_script(self, connection_fd: int, output_fd: int) -> NoReturn:
        """Run a script in this forked process, which keeps no file of its parent."""
        exit_status = os.EX_SOFTWARE
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _prefer_for_oom_killer()
            _keep_only(connection_fd, output_fd)
            self._call_script(connection_fd)
            exit_status = 0
        finally:
            # Not sys.exit, which waits for threads that a script started.
            os._exit(exit_status)

    def _close_liveness(self, pid: int) -> None:
        """Kill a process because the run closed its liveness socket."""
        liveness = self._liveness.get(pid)
        if liveness is not None:  # else it ended at the same moment and is reaped already
            self._selector.unregister(liveness)
            _kill(pid)

    def _kill_too_large(self) -> None:
        for pid, limit in list(self._memory_limits.items()):
            if _memory_taken(pid) > limit:
                self._too_large.add(pid)
                _kill(pid)
                del self._memory_limits[pid]

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wake.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._report_end(pid, status)

    def _report_end(self, pid: int, status: int) -> None:
        liveness = self._liveness.pop(pid)
        self._memory_limits.pop(pid, None)
        # The system does not reuse the process id while a process of the group is left.
        _kill_group(pid)
        with contextlib.suppress(KeyError):
            self._selector.unregister(liveness)
        _report(liveness, f"ended {status} {TOO_LARGE}" if pid in self._too_large else f"ended {status}")
        self._too_large.discard(pid)
        liveness.close()

    def _kill_all(self) -> None:
        for pid in self._liveness:
            _kill(pid)
        for pid in self._liveness:
            os.waitpid(pid, 0)


def _memory_taken(pid: int) -> int:
    """Return how many bytes of memory a process takes; 0 where it has ended, or without Linux's /proc."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_COUNTED))


def _report(liveness: socket.socket, event: str) -> None:
    with contextlib.suppress(OSError):  # the run has closed its end
        liveness.sendall(f"{event}\n".encode())


def _kill(pid: int) -> None:
    """Kill a process that is not reaped yet, with its group."""
    _kill_group(pid)
    # A process that was forked just now may not lead a group yet.
    os.kill(pid, signal.SIGKILL)


def _kill_group(pid: int) -> None:
    # Systems refuse to signal a group of which only a dead process is left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _prefer_for_oom_killer() -> None:
    """Where the machine runs out of memory, the system is to kill a script rather than the run."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _keep_only(connection_fd: int, output_fd: int) -> None:
    """Close every file but the connection; prints go to the output, and there is no input."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    os.closerange(3, connection_fd)
    os.closerange(connection_fd + 1, _MOST_FILES)
