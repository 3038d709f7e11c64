"""Child processes for scripts and for documents, and the fork server that forks them."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import BinaryIO, Protocol

from mind2web2.errors import MachineError
from mind2web2.utils.fork_loop import FDS_PER_START, START, TOO_LARGE
from mind2web2.utils.hidden_keys import PROXIES, scrubbed_environment

# Loading leaves hardly any garbage.
_COMMAND = """
import gc, sys
gc.disable()
from {module} import serve
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


class ForkServer:
    """The process that forks child processes.

    It is started with the first of them, kept for the next ones, and ends with this process. It
    works from any thread and event loop.

    Args:
        module: its ``serve`` is called in the process, with the number of the control socket.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        atexit.register(self.close)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._is_used = False

    def warm_up(self) -> None:
        """Start it, unless it runs already; it loads the package in the background."""
        with self._lock:
            self._ensure_started()

    def start_process(self, fds: list[int], memory_bytes: int) -> None:
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
                    "a fork server does not end pid=%d",
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
        command = _COMMAND.format(module=self._module)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", command, str(theirs.fileno())],
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

    def start_process(self, fds: list[int], memory_bytes: int) -> None:
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


def not_started(reason: str) -> MachineError:
    """Return the error for a process that could not be started."""
    return MachineError(
        f"no process could be started: {reason}; see what {sys.executable} -c 'import mind2web2' "
        "says"
    )


def output_file() -> BinaryIO:
    """Return a file for what a process prints: in memory where that is possible.

    On a full disk, a print would be an error of its process.
    """
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("mind2web2-output"), "w+b")
    return TemporaryFile()


@dataclass(frozen=True)
class ChildProcess:
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
    def start(cls, starter: ProcessStarter, memory_bytes: int, output: BinaryIO) -> ChildProcess:
        """Request a process. Raises MachineError: nobody takes the request."""
        connection, their_connection = socket.socketpair()
        liveness, their_liveness = socket.socketpair()
        process = cls(connection, output, liveness)
        with their_connection, their_liveness:
            fds = [their_connection.fileno(), process.output.fileno(), their_liveness.fileno()]
            try:
                starter.start_process(fds, memory_bytes)
            except OSError as error:
                process.close()
                raise not_started(str(error)) from error
        return process

    def printed(self, most_bytes: int) -> bytes:
        """Return the beginning of what was printed."""
        # The process writes where its output ends, so that this end does not move there.
        return os.pread(self.output.fileno(), most_bytes, 0)

    def is_alive(self) -> bool:
        """Tell whether the fork server is there, and has not reported the end of the process."""
        try:
            self.liveness.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        return False

    def kill(self) -> None:
        """End the process with its group; the connection then has no other end."""
        with contextlib.suppress(OSError):
            self.liveness.shutdown(socket.SHUT_WR)

    def end(self, grace_s: float) -> ProcessEnd:
        """End it, unless it ends by itself within ``grace_s``, and return how it has ended."""
        reports = bytearray()
        if not self._has_reported(reports, grace_s):
            self.kill()
            if not self._has_reported(reports, _END_TIMEOUT_S):
                log.warning("a child process does not end")
        return ProcessEnd.reported(bytes(reports))

    def _has_reported(self, reports: bytearray, timeout_s: float) -> bool:
        """Collect reports until the process has ended, or who forked it."""
        self.liveness.settimeout(timeout_s)
        with contextlib.suppress(OSError):
            while report := self.liveness.recv(_REPORT_BYTES):
                reports += report
            return True
        return False

    def close(self) -> None:
        """Close our ends, which ends the process with its group."""
        self.connection.close()
        self.output.close()
        self.liveness.close()
