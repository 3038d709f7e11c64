"""Processes for scripts, as a run starts and ends them."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from mind2web2.errors import MachineError
from mind2web2.scripts.isolation.fork_server import DEFAULT_MEMORY_BYTES, FDS_PER_START, START, TOO_LARGE
from mind2web2.utils.aio import to_the_end

# A list of names to keep rather than of secrets to drop: a key may have any name.
_KEPT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NO_PROXY", "no_proxy"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONUTF8"),
    }
)
# Locale settings, and those by which coverage is measured in processes that a test starts.
_KEPT_BEGINNINGS = ("LC_", "COVERAGE_")
# Many networks have no other way out; with a password in it, the setting is a secret.
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"})

# Loading leaves hardly any garbage.
_COMMAND = """
import gc, sys
gc.disable()
from mind2web2.scripts.isolation.worker import serve
serve(int(sys.argv[1]))
"""
# It takes half a second to load the package; on a busy machine, longer.
_START_TIMEOUT_S = 60.0
# For a killed process to end, and for the fork server to report it.
_END_TIMEOUT_S = 10.0
# For a fork server to end after its control socket is closed.
_CLOSE_TIMEOUT_S = 5.0
_STREAM_BYTES = 1024**2

log = logging.getLogger(__name__)

# Systems without fork (Windows) would take a second, and another interpreter, for each answer.
IS_POSSIBLE = hasattr(os, "fork")


def scrubbed_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that scripts' processes get."""
    kept = {name: value for name, value in variables.items() if _is_kept(name, value)}
    # Sets have the same order in every run, and so has a claim that a script builds from one.
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "0"}


def _is_kept(name: str, value: str) -> bool:
    if name in _PROXIES:
        return "@" not in value
    return name in _KEPT or name.startswith(_KEPT_BEGINNINGS)


class ForkServer:
    """The process that forks scripts' processes, started with the first of them and kept for the next runs.

    Works from any thread and event loop.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._is_used = False

    def warm_up(self) -> None:
        """Start it, unless it runs already; it loads the package in the background."""
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
                log.warning("the process that starts scripts does not end pid=%d", self._process.pid)
                self._process.kill()
                self._process.wait()
        self._process = self._control = None

    def _start(self) -> socket.socket:
        withheld = [name for name in _PROXIES if "@" in os.environ.get(name, "")]
        if withheld:
            log.warning(
                "scripts do not get proxy settings that contain a password; --script_env passes one on "
                "names=%s",
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


@dataclass(frozen=True)
class Exit:
    """How a process ended.

    Args:
        status: as ``os.waitpid`` gives it.
        was_too_large: it was killed because it exceeded its memory limit.
    """

    status: int
    was_too_large: bool = False


@dataclass
class ScriptProcess:
    """A process that waits for its first message.

    Args:
        pid: of the process, which leads a group of that number.
        reader: of its messages; ``writer`` for messages to it.
        output: everything that it, and all it starts, print.
        liveness: reports how it ends; closing it ends the process.
    """

    pid: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    output: asyncio.StreamReader
    liveness: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    _reported: bytes = b""

    @property
    def exit(self) -> Exit | None:
        """Return how it ended, once it has; ``None`` where the fork server is gone and cannot report it."""
        words = self._reported.decode().split()
        return Exit(int(words[1]), words[2:] == [TOO_LARGE]) if words[:1] == ["ended"] else None

    async def end(self, grace_s: float = 0.0) -> None:
        """End it, with its process group, unless it ends by itself within ``grace_s``."""
        if await self._has_ended(grace_s):
            return
        with contextlib.suppress(OSError):
            self.liveness[1].write_eof()
        if not await self._has_ended(_END_TIMEOUT_S):
            log.warning("a script's process does not end pid=%d", self.pid)

    async def _has_ended(self, timeout_s: float) -> bool:
        """Wait until the fork server has reported the end, or is gone."""
        try:
            async with asyncio.timeout(timeout_s):
                while piece := await self.liveness[0].read(_STREAM_BYTES):
                    self._reported += piece
        except TimeoutError:
            return False
        except OSError:
            pass  # the fork server is gone
        return True


@asynccontextmanager
async def script_process(
    server: ForkServer, memory_bytes: int = DEFAULT_MEMORY_BYTES
) -> AsyncIterator[ScriptProcess]:
    """Start a process for a script, and end it with its process group.

    Raises:
        MachineError: it cannot be started.
    """
    async with AsyncExitStack() as exits:
        process = await _started(server, memory_bytes, exits)
        try:
            yield process
        finally:
            await process.end()


async def _started(server: ForkServer, memory_bytes: int, exits: AsyncExitStack) -> ScriptProcess:
    ours, theirs = zip(*(socket.socketpair() for _ in range(FDS_PER_START)), strict=True)
    # Closing a socket that its stream has closed does nothing.
    for end in ours:
        exits.callback(end.close)
    fds = [end.fileno() for end in theirs]
    try:
        # Also after a cancellation: the thread cannot be stopped, and the descriptors might be reused.
        await to_the_end(asyncio.to_thread(server.start_script, fds, memory_bytes))
    except OSError as error:
        raise MachineError(_not_started(str(error))) from error
    finally:
        for end in theirs:
            end.close()
    connection, output, liveness = [await _opened(end, exits) for end in ours]
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            words = (await liveness[0].readline()).decode().split(maxsplit=1)
    except TimeoutError as error:
        raise MachineError(_not_started(f"nothing happened within {_START_TIMEOUT_S:g} s")) from error
    if not words:
        raise MachineError(_not_started(f"{sys.executable} -c 'import mind2web2' may show the reason"))
    if words[0] != "started":
        raise MachineError(_not_started(words[1]))
    return ScriptProcess(int(words[1]), *connection, output[0], liveness)


async def _opened(
    end: socket.socket, exits: AsyncExitStack
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(sock=end, limit=_STREAM_BYTES)
    exits.push_async_callback(_dropped, writer)
    return reader, writer


async def _dropped(writer: asyncio.StreamWriter) -> None:
    # Not closed, which would wait until the process has read everything.
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _not_started(reason: str) -> str:
    return (
        f"no process could be started for a script: {' '.join(reason.split())}. Or evaluate with "
        "--no_isolate: scripts then run in the process of the run itself"
    )


fork_server = ForkServer()
atexit.register(fork_server.close)
