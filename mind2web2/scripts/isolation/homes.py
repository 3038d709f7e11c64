"""The processes that have scripts loaded, as the run sees them.

Each script has one process, which its answers share.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection

from pydantic_core import to_jsonable_python

from mind2web2.scripts.isolation.messages import HomeJob
from mind2web2.scripts.isolation.rpc import Message, encode, encode_value
from mind2web2.utils.fork_loop import START
from mind2web2.utils.processes import (
    MAX_PRINTED_BYTES,
    ChildProcess,
    ForkServer,
    not_started,
    output_file,
)

# For the fork server to load the package, and for the script. One that takes longer is loaded by
# each pass, within the limits of the answer.
_LOAD_TIMEOUT_S = 100.0
# Answers that begin at the same time share a loaded script. Later ones may meet another time,
# environment or file than that with which it was loaded.
_LONGEST_USE_S = 5.0


@dataclass(eq=False)
class ScriptHome:
    """A process with a loaded script; it starts a process for each pass.

    Args:
        printed: what the script printed while it was loaded.
    """

    process: ChildProcess
    printed: bytes
    users: int = 1
    is_closed: bool = False
    loaded_s: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_current(self) -> bool:
        """Tell whether another answer may be evaluated by this process."""
        is_old = time.monotonic() - self.loaded_s > _LONGEST_USE_S
        return not is_old and not self.is_closed and self.process.is_alive()

    def start_process(self, fds: list[int], memory_bytes: int) -> None:
        """Request a process that gets these ends of its connection, output and liveness socket."""
        with self._lock:
            socket.send_fds(self.process.connection, [START.pack(memory_bytes)], fds)


class ScriptHomes:
    """The scripts that are loaded. Works from any thread and event loop."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._loading: dict[str, threading.Lock] = {}
        self._homes: dict[str, ScriptHome] = {}

    def take(self, job: HomeJob) -> ScriptHome:
        """Return the process of a script, for a user who gives it back; it may be loaded already.

        Raises:
            MachineError: it cannot be started.
        """
        key = encode_value(to_jsonable_python(job))
        with self._lock:
            loading = self._loading.setdefault(key, threading.Lock())
        with loading:
            home = self._taken(key)
            if home is None:
                home = self._load(job)
                with self._lock:
                    self._homes[key] = home
            return home

    def _taken(self, key: str) -> ScriptHome | None:
        """Return a loaded process with one user more, before its last user can end it."""
        with self._lock:
            home = self._homes.get(key)
            if home is None or not home.is_current:
                return None
            home.users += 1
            return home

    def give_back(self, home: ScriptHome) -> None:
        """Note that a user needs a process no longer; one without a user ends."""
        with self._lock:
            home.users -= 1
            if not home.users:
                home.is_closed = True
                home.process.close()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            for home in self._homes.values():
                home.process.close()

    def _load(self, job: HomeJob) -> ScriptHome:
        home = self._start(job) or self._start(replace(job, is_loaded_late=True))
        if home is None:
            raise not_started("the one that loads a script does not answer")
        return home

    def _start(self, job: HomeJob) -> ScriptHome | None:
        """Start a process and let it load the script; ``None`` where it ends instead."""
        process = ChildProcess.start(self._server, job.limits.memory_bytes, output_file())
        try:
            _wait_until_loaded(process.connection, job)
        except (OSError, EOFError, ValueError):
            process.close()
            return None
        return ScriptHome(process, process.printed(MAX_PRINTED_BYTES))


def _wait_until_loaded(control: socket.socket, job: HomeJob) -> None:
    """Send a job and wait until its script is loaded.

    Raises:
        OSError, EOFError, ValueError: the process does not answer.
    """
    with Connection(os.dup(control.fileno())) as connection:
        connection.send_bytes(encode(Message("job", to_jsonable_python(job))))
        if not connection.poll(_LOAD_TIMEOUT_S):
            raise EOFError
        connection.recv_bytes()


fork_server = ForkServer("mind2web2.scripts.isolation.worker")
script_homes = ScriptHomes(fork_server)
atexit.register(script_homes.close)
