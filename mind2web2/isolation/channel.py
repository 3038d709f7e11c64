"""The script's end of the channel to the run: questions and notes go out, replies and questions come in."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mind2web2.isolation.messages import (
    LENGTH,
    Frames,
    Message,
    checked_length,
    error_from,
    frame_of,
    message_in,
)

# Of questions that wait for their reply: the run keeps them in its own memory.
MAX_WAITING_BYTES = 64 * 1024**2
_PIECE_BYTES = 1024**2
# Of a process that had no memory left to take in a reply.
NO_MEMORY_STATUS = 77

# Answers a question of the run's.
Answering = Callable[[Message], Message]


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Keep a script that blocks from being interrupted in the middle of a message."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Channel:
    """Speaks with the run over a socket; what is sent is on its way when ``note`` returns.

    Notes may be sent from any thread, and reach the run though the process should crash right afterwards.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._sending = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._later: deque[Message] = deque()
        self._is_open = True
        os.register_at_fork(after_in_child=self._drop)

    def first_message(self) -> Message:
        """Wait for the message that everything begins with."""
        return message_in(self._read(checked_length(self._read(LENGTH.size))))

    def listen(self, answering: Answering) -> None:
        """Take what arrives from now on, in the running event loop."""
        frames = Frames()
        loop = asyncio.get_running_loop()

        def take() -> None:
            try:
                # The socket blocks, for the sake of those who send; now there is something to read.
                piece = self._socket.recv(_PIECE_BYTES, socket.MSG_DONTWAIT)
                if not piece:
                    os._exit(1)  # the run is gone, and nobody is interested any more
                for message in frames.add(piece):
                    self._take(message, answering)
            except (BlockingIOError, InterruptedError):
                return
            except MemoryError:
                # The reply is lost, and whoever waits for it would wait for ever.
                os._exit(NO_MEMORY_STATUS)
            except BaseException:
                # As where a script has changed what messages are read with: likewise.
                os._exit(1)

        loop.add_reader(self._socket.fileno(), take)

    def wait_until_closed(self) -> None:
        """Return once the run has closed its end, and so has read everything."""
        with suppress(OSError):
            while self._socket.recv(_PIECE_BYTES):
                pass

    async def ask(self, kind: str, **content: Any) -> Any:
        """Return the run's reply to a question.

        Raises:
            Exception: what the run says went wrong.
        """
        number = next(self._numbers)
        frame = frame_of({"kind": kind, "number": number, **content})
        while self._waiting_bytes and self._waiting_bytes + len(frame) > MAX_WAITING_BYTES:
            self._room.clear()
            await self._room.wait()
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._waiting_bytes += len(frame)
        self._send(frame)
        try:
            return await reply
        except asyncio.CancelledError:
            self.note("cancel", question=number)
            raise
        finally:
            del self._waiting[number]
            self._waiting_bytes -= len(frame)
            self._room.set()

    def note(self, kind: str, **content: Any) -> None:
        """Tell the run something."""
        self._send(frame_of({"kind": kind, **content}))

    def note_later(self, kind: str, **content: Any) -> None:
        """Tell the run something together with what is sent next: for finalizers, which must not wait."""
        self._later.append({"kind": kind, **content})

    def _take(self, message: Message, answering: Answering) -> None:
        if message["kind"] != "reply":
            self.note("reply", to=message["number"], **answering(message))
            return
        reply = self._waiting.get(message["to"])
        if reply is None or reply.done():
            return  # nobody waits for it any more
        if "error" in message:
            reply.set_exception(error_from(message["error"]))
        else:
            reply.set_result(message["value"])

    def _send(self, frame: bytes) -> None:
        with self._sending, _not_interrupted():
            if not self._is_open:
                return
            while self._later:
                self._socket.sendall(frame_of(self._later.popleft()))
            self._socket.sendall(frame)

    def _read(self, length: int) -> bytes:
        content = b""
        while len(content) < length:
            piece = self._socket.recv(length - len(content))
            if not piece:
                os._exit(1)
            content += piece
        return content

    def _drop(self) -> None:
        """After a fork by the script: two who speak at once would not be understood."""
        self._sending = threading.Lock()
        self._is_open = False
        self._socket.close()
