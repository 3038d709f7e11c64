"""Processes for scripts: a fork server with the package loaded, and the run's use of it.

The fork server forks a process for each script in milliseconds. It runs no script itself, and has
no API keys, threads or event loop. Each script's process has a *liveness socket*: the fork server
reports on it how the process ended, or why it could not be forked; once the run closes its end, or
dies, the fork server kills the process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import resource
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, NoReturn, Protocol

from mind2web2.errors import UsageError
from mind2web2.utils.hidden_keys import PROXIES, scrubbed_environment

# Real scripts take a few seconds of processor time and less than 100 MB, most of it for Python
# itself.
DEFAULT_MEMORY_BYTES = 1024**3
DEFAULT_PROCESSOR_S = 600
# A full disk costs every answer of the run.
MAX_FILE_BYTES = 1024**3
_CPU_GRACE_S = 5
# Between two checks, a script that fills memory at full speed takes some 100 MB more.
_CHECK_EVERY_S = 0.05
# Memory that does not copy a file: the process's own, shared memory, swapped out memory.
_COUNTED = ("RssAnon:", "RssShmem:", "VmSwap:")
# Far more than this process ever opens; the system's own limit may be huge.
_MAX_FILES = 65_536
# Sent along with each request: connection, output, liveness socket.
FDS_PER_START = 3
# A request for a process: its memory limit in bytes.
START = struct.Struct(">Q")
# The reason that is reported if a process exceeded its memory limit.
TOO_LARGE = "memory"


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """Limits for one answer's evaluation; a process that exceeds one is killed.

    Args:
        memory_bytes: of the process, on Linux. Allocations do not fail at the limit: a script might
            catch the error and return another score.
        processor_s: seconds of processor time.
        block_s: a script that blocks the event loop for so long is interrupted.
    """

    memory_bytes: int = DEFAULT_MEMORY_BYTES
    processor_s: int = DEFAULT_PROCESSOR_S
    block_s: float = 60.0

    def apply_to_this_process(self) -> None:
        """Set the system's limits for this process and for all that it starts."""
        # First the signal that names the reason, then SIGKILL.
        _lower(resource.RLIMIT_CPU, self.processor_s, self.processor_s + _CPU_GRACE_S)
        _lower(resource.RLIMIT_FSIZE, MAX_FILE_BYTES, MAX_FILE_BYTES)
        # Python ignores it, so that the write raises an error that a script may catch.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        # A core file would take hundreds of megabytes.
        _lower(resource.RLIMIT_CORE, 0, 0)


def _lower(kind: int, limit: int, last_limit: int) -> None:
    _, hard_limit = resource.getrlimit(kind)
    if hard_limit == resource.RLIM_INFINITY or hard_limit > last_limit:
        resource.setrlimit(kind, (limit, last_limit))


@dataclass(slots=True)
class _Child:
    """A script's process, as the fork server knows it."""

    pid: int
    liveness: socket.socket
    memory_bytes: int
    is_too_large: bool = False
    unwanted_s: float | None = None


class ForkLoop:
    """Starts a process for each request, until the run closes the control socket.

    Args:
        grace_s: for a process to end its own ones, and itself, once the run closes its sockets.
    """

    def __init__(
        self,
        control: socket.socket,
        run_script: Callable[[int], None],
        grace_s: float = 0.0,
    ) -> None:
        self._control = control
        self._grace_s = grace_s
        self._run_script = run_script
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
        next_check_s = 0.0
        while True:
            ready = self._selector.select(_CHECK_EVERY_S if self._children else None)
            if time.monotonic() >= next_check_s:
                self._kill_too_large()
                self._kill_unwanted()
                next_check_s = time.monotonic() + _CHECK_EVERY_S
            for key, _ in ready:
                if key.fileobj is self._wake:
                    self._reap()
                elif key.fileobj is not self._control:
                    self._note_unwanted(key.data)
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
                self._run_forked(connection_fd, output_fd)
            self._children[pid] = _Child(pid, liveness, *START.unpack(request))
            self._selector.register(liveness, selectors.EVENT_READ, self._children[pid])
        os.close(connection_fd)
        os.close(output_fd)
        return True

    def _run_forked(self, connection_fd: int, output_fd: int) -> NoReturn:
        """Run a script in this forked process, which keeps no file of its parent."""
        exit_status = os.EX_SOFTWARE
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # If the machine runs out of memory, the system should kill a script rather than the
            # run.
            with contextlib.suppress(OSError):
                Path("/proc/self/oom_score_adj").write_text("1000")
            _keep_only(connection_fd, output_fd)
            self._run_script(connection_fd)
            exit_status = 0
        finally:
            # sys.exit would wait for threads that a script started.
            os._exit(exit_status)

    def _note_unwanted(self, child: _Child) -> None:
        """Note that the run closed a process's liveness socket."""
        if child.pid in self._children:  # else it ended at the same moment and is reaped already
            self._selector.unregister(child.liveness)
            child.unwanted_s = time.monotonic()
            self._kill_unwanted()

    def _kill_unwanted(self) -> None:
        for child in self._children.values():
            since_s = child.unwanted_s
            if since_s is not None and time.monotonic() >= since_s + self._grace_s:
                _kill(child.pid)

    def _kill_too_large(self) -> None:
        for child in self._children.values():
            if not child.is_too_large and _memory_taken(child.pid) > child.memory_bytes:
                child.is_too_large = True
                _kill(child.pid)

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


def _keep_only(connection_fd: int, output_fd: int) -> None:
    """Close every file but the connection; prints go to the output, and there is no input."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    os.closerange(3, connection_fd)
    os.closerange(connection_fd + 1, _MAX_FILES)


# Loading leaves hardly any garbage.
_COMMAND = """
import gc, sys
gc.disable()
from mind2web2.scripts.isolation.worker import serve
serve(int(sys.argv[1]))
"""
# The time for a killed process to end, and for the fork server to report it.
_END_TIMEOUT_S = 10.0
# The time for a fork server to end after its control socket is closed.
_CLOSE_TIMEOUT_S = 5.0
_REPORT_BYTES = 4096
# The rest of what a process prints is left out.
MAX_PRINTED_BYTES = 1024**2

log = logging.getLogger(__name__)

# Systems without fork (Windows) would take a second, and another interpreter, for each answer.
_CAN_FORK = hasattr(os, "fork")


class ForkServer:
    """The process that forks scripts' processes.

    It is started with the first of them and kept for the next runs.

    It works from any thread and event loop.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._is_used = False

    def warm_up(self) -> None:
        """Start it, unless it runs already; it loads the package in the background.

        Raises:
            UsageError: this system cannot fork.
        """
        with self._lock:
            self._ensure_started()

    def start_script(self, fds: list[int], memory_bytes: int) -> None:
        """Request a process that gets these ends of its connection, output and liveness socket."""
        assert len(fds) == FDS_PER_START
        with self._lock:
            socket.send_fds(self._ensure_started(), [START.pack(memory_bytes)], fds)
            self._is_used = True

    def close(self) -> None:
        """End it, with every process that it has started."""
        with self._lock:
            self._end()

    def _ensure_started(self) -> socket.socket:
        if not _CAN_FORK:
            raise UsageError(
                "each eval script runs in a process of its own, and this system cannot fork "
                "processes: use Linux, macOS or, on Windows, WSL"
            )
        if self._process is None or self._control is None or self._process.poll() is not None:
            self._end()
            self._control = self._start()
        return self._control

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            if not self._is_used:
                # It may still be loading, and has no process to end.
                self._process.kill()
            try:
                self._process.wait(_CLOSE_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                log.warning(
                    "the process that starts scripts does not end pid=%d",
                    self._process.pid,
                )
                self._process.kill()
                self._process.wait()
        self._process = self._control = None

    def _start(self) -> socket.socket:
        withheld = [name for name in PROXIES if "@" in os.environ.get(name, "")]
        if withheld:
            log.warning(
                "scripts do not get proxy settings that contain a password names=%s",
                ",".join(sorted(withheld)),
            )
        control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _COMMAND, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=scrubbed_environment(os.environ),
                pass_fds=[theirs.fileno()],
                # The run handles Ctrl-C.
                start_new_session=True,
            )
        return control


class ProcessStarter(Protocol):
    """Forks processes: the fork server, or a process that has a script loaded."""

    def start_script(self, fds: list[int], memory_bytes: int) -> None:
        """Request a process that gets these ends of its connection, output and liveness socket."""


@dataclass(frozen=True)
class ProcessEnd:
    """How a process has ended.

    Args:
        status: as ``os.waitpid`` gives it; ``None`` if the process that forked it has ended before.
        was_too_large: it was killed because it exceeded its memory limit.
        not_started: why it could not be forked.
    """

    status: int | None = None
    was_too_large: bool = False
    not_started: str | None = None

    @classmethod
    def reported(cls, reports: bytes) -> ProcessEnd:
        """Return the end that reports on a process tell of."""
        for line in reports.decode(errors="replace").splitlines():
            event, _, details = line.partition(" ")
            if event == "failed":
                return cls(not_started=details)
            if event == "ended":
                status, *more = details.split()
                return cls(int(status), more == [TOO_LARGE])
        return cls()


def _output_file() -> BinaryIO:
    """Return a file for what a process prints: in memory where that is possible.

    On a full disk, a print would be an error of the script.
    """
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("mind2web2-output"), "w+b")
    return TemporaryFile()


@dataclass(frozen=True)
class ScriptProcess:
    """A process that waits for its first message.

    Args:
        connection: for messages.
        output: everything that the process, and all it starts, print.
        liveness: reports how the process starts and ends; closing it ends the process.
    """

    connection: socket.socket
    output: BinaryIO
    liveness: socket.socket

    @classmethod
    def start(cls, starter: ProcessStarter, memory_bytes: int) -> ScriptProcess:
        """Request a process. Raises OSError: nobody takes the request."""
        connection, their_connection = socket.socketpair()
        liveness, their_liveness = socket.socketpair()
        process = cls(connection, _output_file(), liveness)
        with their_connection, their_liveness:
            fds = [their_connection.fileno(), process.output.fileno(), their_liveness.fileno()]
            try:
                starter.start_script(fds, memory_bytes)
            except BaseException:
                process.close()
                raise
        return process

    def printed(self, most_bytes: int) -> bytes:
        """Return the beginning of what was printed."""
        # The process writes where its output ends, so that this end does not move there.
        return os.pread(self.output.fileno(), most_bytes, 0)

    async def end(self, grace_s: float) -> ProcessEnd:
        """End it, unless it ends by itself within ``grace_s``, and return how it has ended."""
        self.liveness.setblocking(False)
        reports = bytearray()
        if not await self._has_reported(reports, grace_s):
            with contextlib.suppress(OSError):
                self.liveness.shutdown(socket.SHUT_WR)
            if not await self._has_reported(reports, _END_TIMEOUT_S):
                log.warning("a script's process does not end")
        return ProcessEnd.reported(bytes(reports))

    async def _has_reported(self, reports: bytearray, timeout_s: float) -> bool:
        """Collect reports until the process has ended, or who forked it."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(timeout_s):
                while report := await loop.sock_recv(self.liveness, _REPORT_BYTES):
                    reports += report
                return True
        return False

    def close(self) -> None:
        """Close our ends, which ends the process with its group."""
        self.connection.close()
        self.output.close()
        self.liveness.close()


fork_server = ForkServer()
atexit.register(fork_server.close)


# A script that blocks the event loop for so long never releases it.
LONGEST_BLOCK_S = 60.0
