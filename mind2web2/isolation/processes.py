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
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from mind2web2.errors import MachineError
from mind2web2.isolation.environment import scrubbed_environment
from mind2web2.isolation.fork_server import FDS_A_START, START

_COMMAND = "from mind2web2.isolation.fork_server import serve; serve(int(__import__('sys').argv[1]))"
# It takes half a second to load the package; a machine that is busy with other things, longer.
_START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 10.0
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

    def warm_up(self) -> None:
        """Let it load the package meanwhile, unless it is there already."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()

    def start_script(self, fds: list[int]) -> None:
        """Have a process started that gets its channel, its output and its leash."""
        assert len(fds) == FDS_A_START
        self.warm_up()
        with self._lock:
            assert self._control is not None
            try:
                socket.send_fds(self._control, [START], fds)
            except ConnectionError:
                # It was killed while nobody looked; a new one does as well.
                self._start()
                socket.send_fds(self._control, [START], fds)

    def close(self) -> None:
        """End it, with every process that it has started."""
        with self._lock:
            if self._process is None or self._control is None:
                return
            self._control.close()
            self._process.wait()
            self._process = self._control = None

    def _start(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.wait()
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
class ScriptProcess:
    """A process that waits for its first message.

    Args:
        pid: of the process, which leads a group of that number.
        reader: of what it says; ``writer`` for what it is told.
        output: what it, and all it starts, print.
        leash: tells how it ends; shut, it ends the process.
    """

    pid: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    output: asyncio.StreamReader
    leash: tuple[asyncio.StreamReader, asyncio.StreamWriter]

    async def wait_status(self) -> int | None:
        """Return how it has ended, as ``os.waitpid`` gives it; ``None`` where nobody is left to tell."""
        words = (await self.leash[0].readline()).split()
        return int(words[1]) if words[:1] == [b"ended"] else None

    async def end(self, grace_s: float = 0.0) -> None:
        """End it, unless it ends by itself, and wait until it is gone with all that it has started.

        Args:
            grace_s: for it to end by itself.
        """
        told, leash = self.leash
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(grace_s):
                await told.read()
        with contextlib.suppress(OSError):
            leash.write_eof()
        try:
            async with asyncio.timeout(_END_TIMEOUT_S):
                await told.read()
        except (TimeoutError, OSError):
            log.warning("a script's process does not end pid=%d", self.pid)


@asynccontextmanager
async def script_process(server: ForkServer) -> AsyncIterator[ScriptProcess]:
    """Start a process for a script; in the end nothing of it is left.

    Raises:
        MachineError: it cannot be started.
    """
    async with AsyncExitStack() as exits:
        process = await _started(server, exits)
        try:
            yield process
        finally:
            await process.end()


async def _started(server: ForkServer, exits: AsyncExitStack) -> ScriptProcess:
    ours, theirs = zip(*(socket.socketpair() for _ in range(FDS_A_START)), strict=True)
    # Closing what a stream has taken over, and closed, does nothing.
    for end in ours:
        exits.callback(end.close)
    try:
        await asyncio.to_thread(server.start_script, [end.fileno() for end in theirs])
    except OSError as error:
        raise _not_started(str(error)) from error
    finally:
        for end in theirs:
            end.close()
    channel, output, leash = [await _opened(end, exits) for end in ours]
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            words = (await leash[0].readline()).decode().split(maxsplit=1)
    except TimeoutError as error:
        raise _not_started(f"nothing happened within {_START_TIMEOUT_S:g} s") from error
    if words[:1] != ["started"]:
        raise _not_started(words[1] if words[1:] else f"{sys.executable} -c 'import mind2web2' may say why")
    return ScriptProcess(int(words[1]), *channel, output[0], leash)


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


def _not_started(reason: str) -> MachineError:
    return MachineError(
        f"no process could be started for a script: {' '.join(reason.split())}. Or evaluate with "
        "--no_isolate: scripts then run in the process of the run itself"
    )


fork_server = ForkServer()
atexit.register(fork_server.close)
