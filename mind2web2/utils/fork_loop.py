"""The fork server of child processes, in its own process, and in one that has a script loaded.

It forks a process for each request in milliseconds, does no work itself, and has no API keys,
threads or event loop. Each process has a *liveness socket*: the fork server reports on it how the
process ended, or why it could not be forked; once the parent closes its end, or dies, the fork
server kills the process.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

# Sent along with each request: connection, output, liveness socket.
FDS_PER_START = 3
# A request for a process: its memory limit in bytes.
START = struct.Struct(">Q")
# The reason that is reported if a process exceeded its memory limit.
TOO_LARGE = "memory"
# Between two checks, a process that fills memory at full speed takes some 100 MB more.
_CHECK_EVERY_S = 0.05
# Faster than any process takes memory: one that is far from its limit is checked less often.
_MOST_BYTES_PER_S = 8 * 1024**3
# Memory that does not copy a file: the process's own, shared memory, swapped out memory.
_COUNTED = ("RssAnon:", "RssShmem:", "VmSwap:")
# Far more than this process ever opens; the system's own limit may be huge.
_MAX_FILES = 65_536


@dataclass(slots=True)
class _Child:
    """A process, as the fork server knows it.

    Args:
        check_s: the time of its next check.
        kill_s: when it is killed, if it is unwanted.
    """

    pid: int
    liveness: socket.socket
    memory_bytes: int
    is_too_large: bool = False
    check_s: float = field(default_factory=lambda: time.monotonic() + _CHECK_EVERY_S)
    kill_s: float = math.inf

    def check(self, now_s: float) -> None:
        """Kill the process if it has been unwanted for long enough, or takes too much memory."""
        if now_s >= self.kill_s:
            self.check_s = now_s + _CHECK_EVERY_S
            _kill(self.pid)
            return
        room_bytes = self.memory_bytes - _memory_taken(self.pid)
        self.check_s = now_s + max(_CHECK_EVERY_S, room_bytes / _MOST_BYTES_PER_S)
        if room_bytes < 0:
            self.is_too_large = True
            _kill(self.pid)


class ForkLoop:
    """Starts a process for each request, until the parent closes the control socket.

    Args:
        grace_s: for a process to end its own ones, and itself, once the parent closes its sockets.
    """

    def __init__(
        self,
        control: socket.socket,
        serve_child: Callable[[int], None],
        grace_s: float = 0.0,
    ) -> None:
        self._control = control
        self._grace_s = grace_s
        self._serve_child = serve_child
        self._children: dict[int, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        # A signal handler that does nothing: the byte that Python writes here wakes the selector.
        self._wake, wake_end = socket.socketpair()
        self._wake.setblocking(False)
        wake_end.setblocking(False)
        self._selector.register(self._wake, selectors.EVENT_READ)
        signal.set_wakeup_fd(wake_end.detach(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        """Serve until the other end of the control socket is closed."""
        while True:
            ready = self._selector.select(self._until_check_s())
            self._check_children()
            for key, _ in ready:
                if key.fileobj is self._wake:
                    self._reap()
                elif key.fileobj is not self._control:
                    self._note_unwanted(key.data)
                elif not self._start_one():
                    self._kill_all()
                    return

    def _start_one(self) -> bool:
        """Start the requested process; ``False`` where the parent has closed the control socket."""
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
                self._run_forked(connection_fd, output_fd)
            self._children[pid] = _Child(pid, liveness, *START.unpack(request))
            self._selector.register(liveness, selectors.EVENT_READ, self._children[pid])
        os.close(connection_fd)
        os.close(output_fd)
        return True

    def _run_forked(self, connection_fd: int, output_fd: int) -> NoReturn:
        """Do the work of this forked process, which keeps no file of its parent."""
        exit_status = os.EX_SOFTWARE
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # If the machine runs out of memory, the system should kill a child rather than the
            # run.
            with contextlib.suppress(OSError):
                Path("/proc/self/oom_score_adj").write_text("1000")
            _keep_only(connection_fd, output_fd)
            self._serve_child(connection_fd)
            exit_status = 0
        finally:
            # sys.exit would wait for threads that were started.
            os._exit(exit_status)

    def _note_unwanted(self, child: _Child) -> None:
        """Note that the parent closed a process's liveness socket."""
        if child.pid in self._children:  # else it ended at the same moment and is reaped already
            self._selector.unregister(child.liveness)
            now_s = time.monotonic()
            child.kill_s = now_s + self._grace_s
            child.check(now_s)

    def _until_check_s(self) -> float | None:
        """Return the seconds until the next check; ``None`` without a process."""
        if not self._children:
            return None
        return min(child.check_s for child in self._children.values()) - time.monotonic()

    def _check_children(self) -> None:
        now_s = time.monotonic()
        for child in self._children.values():
            if now_s >= child.check_s:
                child.check(now_s)

    def _kill_all(self) -> None:
        until_s = time.monotonic() + self._grace_s
        while self._children and time.monotonic() < until_s:
            self._reap()
            self._selector.select(_CHECK_EVERY_S)
        for pid in self._children:
            _kill(pid)
        for pid in self._children:
            os.waitpid(pid, 0)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wake.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._report_end(self._children.pop(pid), status)

    def _report_end(self, child: _Child, status: int) -> None:
        # The system does not reuse the process id while a process of the group is left.
        _kill_group(child.pid)
        with contextlib.suppress(KeyError):  # unwanted
            self._selector.unregister(child.liveness)
        _report(child.liveness, f"ended {status} {TOO_LARGE if child.is_too_large else ''}")
        child.liveness.close()


def _memory_taken(pid: int) -> int:
    """Return how many bytes of memory a process takes.

    It is 0 if the process has ended, or without Linux's /proc.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_COUNTED))


def _report(liveness: socket.socket, event: str) -> None:
    with contextlib.suppress(OSError):  # the parent has closed its end
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


def _keep_only(connection_fd: int, output_fd: int) -> None:
    """Close every file but the connection; prints go to the output, and there is no input."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    os.closerange(3, connection_fd)
    os.closerange(connection_fd + 1, _MAX_FILES)
