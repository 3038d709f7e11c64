"""The processes that have scripts loaded, as the run sees them.

Each script has one process, which its answers share.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection

from pydantic_core import to_jsonable_python

from mind2web2.scripts.isolation.effects import changed_ns
from mind2web2.scripts.isolation.processes import (
    MAX_PRINTED_BYTES,
    START,
    ForkServer,
    ScriptProcess,
    fork_server,
)
from mind2web2.scripts.isolation.rpc import Message, decode, encode, encode_value
from mind2web2.scripts.isolation.worker import HomeJob

# For the fork server to load the package, and for the script. One that takes longer is loaded by
# each pass, within the limits of the answer.
_LOAD_TIMEOUT_S = 100.0
# A script may keep the time, or the environment, at which it was loaded.
_LONGEST_USE_S = 600.0
# Scripts that stay loaded though no answer is evaluated by them.
_MAX_IDLE_HOMES = 8


@dataclass(eq=False)
class ScriptHome:
    """A process with a loaded script; it starts a process for each pass.

    Args:
        printed: what the script printed while it was loaded.
        files: what it has read then, with the times of the last changes.
    """

    process: ScriptProcess
    files: dict[str, int]
    printed: bytes
    users: int = 0
    loaded_s: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_current(self) -> bool:
        """Tell whether the script would be loaded in the same way now."""
        is_old = time.monotonic() - self.loaded_s > _LONGEST_USE_S
        return (
            not is_old
            and self._is_alive()
            and all(changed_ns(path) == moment for path, moment in self.files.items())
        )

    def _is_alive(self) -> bool:
        """Tell whether the fork server is there, and has not reported the end of the process."""
        try:
            self.process.liveness.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        return False

    def start_script(self, fds: list[int], memory_bytes: int) -> None:
        """Request a process that gets these ends of its connection, output and liveness socket."""
        with self._lock:
            socket.send_fds(self.process.connection, [START.pack(memory_bytes)], fds)


class ScriptHomes:
    """The scripts that are loaded. Works from any thread and event loop."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._loading: dict[str, threading.Lock] = {}
        self._homes: OrderedDict[str, ScriptHome] = OrderedDict()

    def take(self, job: HomeJob) -> ScriptHome:
        """Return the process of a script, for a user who gives it back; it may be loaded already.

        Raises:
            OSError: it cannot be started.
        """
        key = encode_value(to_jsonable_python(job))
        with self._lock:
            loading = self._loading.setdefault(key, threading.Lock())
        with loading:
            with self._lock:
                home = self._homes.get(key)
                if home is not None and home.is_current:
                    home.users += 1
                    self._homes.move_to_end(key)
                    return home
            fresh = self._load(job)
            with self._lock:
                fresh.users += 1
                self._homes[key] = fresh
                if home is not None and not home.users:
                    home.process.close()
            return fresh

    def give_back(self, home: ScriptHome) -> None:
        """Note that a user needs a process no longer; the oldest of many without a user end."""
        with self._lock:
            home.users -= 1
            if home not in self._homes.values():
                if not home.users:
                    home.process.close()
                return
            idle = [key for key, each in self._homes.items() if not each.users]
            for key in idle[: max(len(idle) - _MAX_IDLE_HOMES, 0)]:
                self._homes.pop(key).process.close()
                self._loading.pop(key, None)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            for home in self._homes.values():
                home.process.close()
            self._homes.clear()

    def _load(self, job: HomeJob) -> ScriptHome:
        home = self._start(job) or self._start(replace(job, is_loaded_late=True))
        if home is None:
            raise OSError("the process that loads it does not answer")
        return home

    def _start(self, job: HomeJob) -> ScriptHome | None:
        """Start a process and let it load the script; ``None`` where it ends instead."""
        process = ScriptProcess.start(self._server, job.limits.memory_bytes)
        try:
            files = _files_read(process.connection, job)
        except (OSError, EOFError, ValueError):
            process.close()
            return None
        return ScriptHome(process, files, process.printed(MAX_PRINTED_BYTES))


def _files_read(control: socket.socket, job: HomeJob) -> dict[str, int]:
    """Send a job and return the files that its script has read.

    Raises:
        OSError, EOFError, ValueError: the process does not answer.
    """
    with Connection(os.dup(control.fileno())) as connection:
        connection.send_bytes(encode(Message("job", to_jsonable_python(job))))
        if not connection.poll(_LOAD_TIMEOUT_S):
            raise EOFError
        files: dict[str, int] = decode(connection.recv_bytes()).content
        return files


script_homes = ScriptHomes(fork_server)
atexit.register(script_homes.close)
