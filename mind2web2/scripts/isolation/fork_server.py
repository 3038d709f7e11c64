"""The process that starts scripts' processes: it has the package loaded, and forks in milliseconds.

It runs nothing of any script's, holds no key (its environment is scrubbed, and it was executed anew rather
than forked from the run), and has no threads or event loop that a fork would leave in an odd state. A
script's process lives as long as whoever asked for it keeps the other end of its *leash*, a socket on which
its start and its end are told: that end is closed with the run's last breath, whatever the run dies of.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import selectors
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import NoReturn

from mind2web2.scripts.isolation import limits as memory_watch
from mind2web2.scripts.isolation.limits import MemoryWatch

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# A daemon that forks faster than it is killed is given up after so many rounds.
_MOST_ROUNDS = 100
# Far more than this process ever opens; the system's own limit may be astronomic.
_MOST_FILES = 65_536
# What is sent along for each process: its channel, its output, its leash.
FDS_A_START = 3
# Asks for a process: how many bytes of memory it may take.
START = struct.Struct(">Q")
# Follows its end where it was ended for that.
TOO_LARGE = "memory"


def serve(control_fd: int) -> None:
    """Start a process for each request that comes in, until nobody is left to ask."""
    from mind2web2.utils.gc_tuning import loading

    with loading():
        from mind2web2.scripts.isolation import worker

        worker.load_all()
    # Pages of memory that the collector does not touch stay shared with the children.
    gc.collect()
    gc.freeze()
    _Server(socket.socket(fileno=control_fd)).run()


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._leashes: dict[int, socket.socket] = {}
        self._memory_limits: dict[int, int] = {}
        self._too_large: set[int] = set()
        self._watch = MemoryWatch()
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._wake, self._wake_end = socket.socketpair()
        for end in (self._wake, self._wake_end):
            end.setblocking(False)
        self._selector.register(self._wake, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._wake_end.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Its only end is that of whoever asks: a script may send its parent what it likes, SIGKILL aside.
        kept_out = signal.valid_signals() - {signal.SIGCHLD}
        self._own_signals = signal.pthread_sigmask(signal.SIG_BLOCK, kept_out)
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        self._adopt_orphans()

    def run(self) -> None:
        """Serve until the other end of the control socket is closed."""
        next_look_s = 0.0
        while True:
            # With no process to look after, there is nothing to wake up for.
            ready = self._selector.select(memory_watch.LOOK_EVERY_S if self._memory_limits else None)
            if time.monotonic() >= next_look_s:
                self._end_too_large()
                next_look_s = time.monotonic() + memory_watch.LOOK_EVERY_S
            for key, _ in ready:
                if key.fileobj is self._wake:
                    self._reap()
                elif key.fileobj is not self._control:
                    self._let_go(key.data)
                elif not self._start_one():
                    self._end_all()
                    return

    def _start_one(self) -> bool:
        """Start the process that is asked for; ``False`` where nobody is left to ask."""
        try:
            request, fds, _, _ = socket.recv_fds(self._control, START.size, FDS_A_START)
        except ConnectionError:
            return False
        if not request:
            return False
        channel_fd, output_fd, leash_fd = fds
        leash = socket.socket(fileno=leash_fd)
        try:
            pid = os.fork()
        except OSError as error:
            _tell(leash, f"failed {error.strerror}")
            leash.close()
        else:
            if pid == 0:
                self._become_a_script(channel_fd, output_fd)
            self._leashes[pid] = leash
            if memory_watch.IS_POSSIBLE:
                [self._memory_limits[pid]] = START.unpack(request)
            self._selector.register(leash, selectors.EVENT_READ, pid)
            _tell(leash, f"started {pid}")
        os.close(channel_fd)
        os.close(output_fd)
        return True

    def _become_a_script(self, channel_fd: int, output_fd: int) -> NoReturn:
        """Make this forked process one of a script's: with nothing of its parent's, and ended with it."""
        exit_status = 1
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._own_signals)
            self._die_with_parent()
            self._adopt_orphans()
            _be_ended_first()
            _keep_only(channel_fd, output_fd)
            from mind2web2.scripts.isolation import worker

            worker.run(socket.socket(fileno=channel_fd))
            exit_status = 0
        finally:
            # Not sys.exit, which would wait for threads that a script has left running.
            os._exit(exit_status)

    def _die_with_parent(self) -> None:
        if self._libc is not None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def _adopt_orphans(self) -> None:
        """Become the parent of descendants whose own has ended, so that no daemon slips away."""
        if self._libc is not None:
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def _let_go(self, pid: int) -> None:
        """Kill a process that nobody waits for any more; what it leaves behind follows once it is reaped."""
        leash = self._leashes.get(pid)
        if leash is None:
            return  # it ended by itself at the same moment, and was reaped just now
        self._selector.unregister(leash)
        _kill(pid)

    def _end_too_large(self) -> None:
        for pid in self._watch.too_large(self._memory_limits):
            self._too_large.add(pid)
            # It is told once it is reaped.
            _kill(pid)
            del self._memory_limits[pid]

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wake.recv(4096):
                pass
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            leash = self._leashes.pop(pid, None)
            self._memory_limits.pop(pid, None)
            if leash is None:
                continue  # an orphan
            # Its number is given to no other process while one of its group is left.
            _kill_group(pid)
            self._kill_orphans()
            with contextlib.suppress(KeyError):
                self._selector.unregister(leash)
            _tell(leash, f"ended {status} {TOO_LARGE}" if pid in self._too_large else f"ended {status}")
            self._too_large.discard(pid)
            leash.close()

    def _kill_orphans(self) -> None:
        """Kill what scripts' processes have left behind outside of their groups."""
        for _ in range(_MOST_ROUNDS):
            orphans = _children() - self._leashes.keys()
            if not orphans:
                return
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for pid in orphans:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def _end_all(self) -> None:
        for pid in self._leashes:
            _kill(pid)
        for pid in self._leashes:
            os.waitpid(pid, 0)
        self._leashes.clear()
        self._kill_orphans()


def _tell(leash: socket.socket, what: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        leash.sendall(f"{what}\n".encode())


def _kill(pid: int) -> None:
    """Kill a process that is not reaped yet, with its group."""
    _kill_group(pid)
    # One that was forked just now may not lead a group yet.
    os.kill(pid, signal.SIGKILL)


def _kill_group(pid: int) -> None:
    # Systems refuse to signal a group of which nothing but a dead process is left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _be_ended_first() -> None:
    """Where the machine runs out of memory before anybody has looked, a script is to go, and not the run."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _keep_only(channel_fd: int, output_fd: int) -> None:
    """Close every file but the channel; what is printed goes to the output, and there is no input."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    os.closerange(3, channel_fd)
    os.closerange(channel_fd + 1, _MOST_FILES)


def _children() -> set[int]:
    """Return this process's children, as far as the system tells them (Linux)."""
    own = os.getpid()
    listed = Path(f"/proc/self/task/{own}/children")
    with contextlib.suppress(OSError):
        return set(map(int, listed.read_text().split()))
    return {int(folder.name) for folder in memory_watch.processes() if memory_watch.parent_of(folder) == own}
