"""Processes for scripts, as a run starts and ends them."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from mind2web2.errors import MachineError, StarterGoneError
from mind2web2.scripts.isolation.fork_server import FDS_A_START, START, TOO_LARGE
from mind2web2.scripts.isolation.limits import DEFAULT_MEMORY_BYTES

# By name rather than by what looks like a secret: a key may have any name.
_KEPT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NO_PROXY", "no_proxy"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONUTF8"),
    }
)
# Locale settings, and those by which coverage is measured in processes that a test starts.
_KEPT_BEGINNINGS = ("LC_", "COVERAGE_")
# The way out of many networks; with a password in it, it is a secret.
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"})

_PR_SET_DUMPABLE = 4


def hide_from_scripts() -> None:
    """Keep other processes of the same user out of this one's memory and environment (Linux), root aside."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def scrubbed_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that scripts' processes are given."""
    kept = {name: value for name, value in variables.items() if _is_kept(name, value)}
    # Sets have the same order in every run, and so has a claim that a script builds from one.
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "0"}


def withheld_proxies(variables: Mapping[str, str]) -> list[str]:
    """Return the names of the settings of proxies that are left out since they have a password."""
    return sorted(name for name, value in variables.items() if name in _PROXIES and not _is_kept(name, value))


def _is_kept(name: str, value: str) -> bool:
    if name in _PROXIES:
        return "@" not in value
    return name in _KEPT or name.startswith(_KEPT_BEGINNINGS)


_COMMAND = "from mind2web2.scripts.isolation.fork_server import serve; serve(int(__import__('sys').argv[1]))"
# It takes half a second to load the package; a machine that is busy with other things, longer.
_START_TIMEOUT_S = 60.0
# For a process to end, and for that to be told.
END_TIMEOUT_S = 10.0
# Of those, before a fork server that does not react is told to go on, as somebody has stopped it.
_REACTION_S = 2.0
# For a fork server to end once it has been asked to.
_CLOSE_TIMEOUT_S = 5.0
_STREAM_BYTES = 1024**2

log = logging.getLogger(__name__)

# Systems without fork (Windows) would take a second, and another interpreter, for each answer.
IS_POSSIBLE = hasattr(os, "fork")


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
        """Let it load the package meanwhile, unless it is there already."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()

    def start_script(self, fds: list[int], memory_bytes: int) -> subprocess.Popen[bytes]:
        """Have a process started that gets its channel, its output and its leash; return who starts it."""
        assert len(fds) == FDS_A_START
        self.warm_up()
        with self._lock:
            assert self._control is not None
            assert self._process is not None
            request = START.pack(memory_bytes)
            self._is_used = True
            # In case that a script has stopped it.
            _go_on(self._process)
            try:
                socket.send_fds(self._control, [request], fds)
            except ConnectionError:
                # It was killed while nobody looked; a new one does as well.
                self._start()
                socket.send_fds(self._control, [request], fds)
            return self._process

    def close(self) -> None:
        """End it, with every process that it has started."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            _go_on(self._process)
            if not self._is_used:
                # It may still be loading, with no script's process to end.
                self._process.kill()
            try:
                self._process.wait(_CLOSE_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                log.warning("the process that starts scripts does not end pid=%d", self._process.pid)
                self._process.kill()
                self._process.wait()
        self._process = self._control = None

    def _start(self) -> None:
        self._end()
        withheld = withheld_proxies(os.environ)
        if withheld:
            log.warning(
                "scripts are not told of proxies with a password; --script_env hands one on names=%s",
                ",".join(withheld),
            )
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _COMMAND, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=scrubbed_environment(os.environ),
                pass_fds=[theirs.fileno()],
                # Ctrl-C is the run's to deal with.
                start_new_session=True,
            )


@dataclass(frozen=True)
class Ending:
    """How a process has ended.

    Args:
        status: as ``os.waitpid`` gives it.
        was_too_large: it was ended since it took more memory than it may.
    """

    status: int
    was_too_large: bool = False


@dataclass
class ScriptProcess:
    """A process that waits for its first message.

    Args:
        pid: of the process, which leads a group of that number.
        reader: of what it says; ``writer`` for what it is told.
        output: what it, and all it starts, print.
        leash: tells how it ends; shut, it ends the process.
        starter: the fork server's process.
        is_given_up: it does not end, and nobody waits for that any more.
    """

    pid: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    output: asyncio.StreamReader
    leash: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    starter: subprocess.Popen[bytes]
    is_given_up: bool = False
    _told: bytes = b""

    @property
    def ending(self) -> Ending | None:
        """Return how it has ended, once it has; ``None`` where nobody is left to tell."""
        words = self._told.decode().split()
        return Ending(int(words[1]), words[2:] == [TOO_LARGE]) if words[:1] == ["ended"] else None

    async def ends(self) -> bool:
        """Wait for its end, and tell whether it came; whoever is to tell of it has some seconds."""
        if await self._has_ended(_REACTION_S):
            return True
        # In case that a script has stopped who tells.
        _go_on(self.starter)
        return await self._has_ended(END_TIMEOUT_S - _REACTION_S)

    async def end(self, grace_s: float = 0.0) -> None:
        """End it, unless it ends by itself, and wait until it is gone with all that it has started.

        Args:
            grace_s: for it to end by itself.
        """
        if self.is_given_up or await self._has_ended(grace_s):
            return
        with contextlib.suppress(OSError):
            self.leash[1].write_eof()
        if await self.ends():
            return
        self.is_given_up = True
        log.warning("a script's process does not end pid=%d", self.pid)
        # What it has started ends with it, on Linux, and the next answer has another.
        self.starter.kill()
        # Not before it is gone: somebody might ask it for the next.
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self.starter.wait, _CLOSE_TIMEOUT_S)

    async def _has_ended(self, timeout_s: float) -> bool:
        """Wait until the other end of the leash is gone, and tell whether it is."""
        try:
            async with asyncio.timeout(timeout_s):
                while piece := await self.leash[0].read(_STREAM_BYTES):
                    self._told += piece
        except TimeoutError:
            return False
        except OSError:
            pass  # a leash that was torn off
        return True


@asynccontextmanager
async def script_process(
    server: ForkServer, memory_bytes: int = DEFAULT_MEMORY_BYTES
) -> AsyncIterator[ScriptProcess]:
    """Start a process for a script; in the end nothing of it is left.

    Raises:
        MachineError: it cannot be started.
        StarterGoneError: whoever was to start it has ended.
    """
    async with AsyncExitStack() as exits:
        process = await _started(server, memory_bytes, exits)
        try:
            yield process
        finally:
            await process.end()


async def _started(server: ForkServer, memory_bytes: int, exits: AsyncExitStack) -> ScriptProcess:
    ours, theirs = zip(*(socket.socketpair() for _ in range(FDS_A_START)), strict=True)
    # Closing what a stream has taken over, and closed, does nothing.
    for end in ours:
        exits.callback(end.close)
    fds = [end.fileno() for end in theirs]
    starting = asyncio.ensure_future(asyncio.to_thread(server.start_script, fds, memory_bytes))
    try:
        starter = await asyncio.shield(starting)
    except OSError as error:
        raise _not_started(str(error)) from error
    finally:
        # Also where nobody wants it any more: the thread would send whatever has their numbers by then.
        await asyncio.wait({starting})
        for end in theirs:
            end.close()
    channel, output, leash = [await _opened(end, exits) for end in ours]
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            words = (await leash[0].readline()).decode().split(maxsplit=1)
    except TimeoutError as error:
        raise _not_started(f"nothing happened within {_START_TIMEOUT_S:g} s") from error
    if not words:
        raise StarterGoneError(_not_started_text(f"{sys.executable} -c 'import mind2web2' may say why"))
    if words[0] != "started":
        raise _not_started(words[1])
    return ScriptProcess(int(words[1]), *channel, output[0], leash, starter)


async def _opened(
    end: socket.socket, exits: AsyncExitStack
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(sock=end, limit=_STREAM_BYTES)
    exits.push_async_callback(_dropped, writer)
    return reader, writer


async def _dropped(writer: asyncio.StreamWriter) -> None:
    # Not closed, which would wait until somebody has read what is written.
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _go_on(process: subprocess.Popen[bytes]) -> None:
    """Have a process go on that somebody may have stopped: scripts can reach it."""
    if hasattr(signal, "SIGCONT"):
        process.send_signal(signal.SIGCONT)


def _not_started(reason: str) -> MachineError:
    return MachineError(_not_started_text(reason))


def _not_started_text(reason: str) -> str:
    return (
        f"no process could be started for a script: {' '.join(reason.split())}. Or evaluate with "
        "--no_isolate: scripts then run in the process of the run itself"
    )


fork_server = ForkServer()
atexit.register(fork_server.close)
