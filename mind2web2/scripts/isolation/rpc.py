"""Both ends of the connection between a run and the process of a script.

Messages are pickled, with the framing of ``multiprocessing``. The run unpickles those of a script's process:
isolation guards against mistakes and is no sandbox (eval-scripts.md).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import pickle
import signal
import struct
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BytesIO
from multiprocessing.connection import Connection
from typing import Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, RootModel

from mind2web2.errors import Mind2Web2Error
from mind2web2.prompts import HashedText

# Thirty screenshots, or a tree of a hundred thousand nodes.
MAX_MESSAGE_BYTES = 64 * 1024**2
# Of an error's text, and of a validation error in a judge's reply.
MAX_REASON_CHARS = 20_000
# The length that ``Connection.send_bytes`` puts before each message.
_LENGTH = struct.Struct("!i")
# Modules that both processes have.
_SHARED = sys.stdlib_module_names | {"mind2web2"}
# How an object that extends a plain value becomes that value.
_PLAIN: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    dict: dict,
    list: list,
    tuple: tuple,
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Args:
        content: arguments of a question or note; the value or error that replies to a question.
        name: of the method that handles a question or note.
        number: of the question that is asked, replied to or cancelled.
    """

    kind: Literal["job", "ask", "reply", "cancel", "note", "done"]
    content: Any = None
    name: str = ""
    number: int = 0


class PageText(HashedText):
    """A page's text, or a name for an image of it; messages to the run contain its reference in the run."""

    reference: tuple[int, str]
    owner: object


class _Pickler(pickle.Pickler):
    """Pickles objects of a script's own classes, which the run lacks, as plain values that they extend."""

    def persistent_id(self, value: Any) -> Any:
        """Return the reference that stands for a text of the run."""
        return value.reference if isinstance(value, PageText) else None

    def reducer_override(self, value: Any) -> Any:
        """Return how to make the value in the other process."""
        if isinstance(value, BaseException):
            text, is_ours = str(value)[:MAX_REASON_CHARS], isinstance(value, Mind2Web2Error)
            if is_ours and _is_shared(type(value)):
                return type(value), (text,)
            return _error_named, (type(value).__name__, text)
        if _is_shared(type(value)):
            return NotImplemented
        if isinstance(value, BaseModel):
            return dict, (value.model_dump(mode="json", by_alias=True, exclude_unset=True),)
        made = ((kind, (plain(value),)) for kind, plain in _PLAIN.items() if isinstance(value, kind))
        return next(made, NotImplemented)


def _is_shared(kind: type) -> bool:
    """Tell whether both processes have a class; a text with its digest is sent without."""
    return kind is not HashedText and kind.__module__.partition(".")[0] in _SHARED


def encoded(message: Message) -> bytes:
    """Return a pickled message.

    Raises:
        ValueError: it is too long.
        Exception: it holds values that cannot be pickled.
    """
    buffer = BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(message)
    if buffer.tell() > MAX_MESSAGE_BYTES:
        limit_mb = MAX_MESSAGE_BYTES // 1024**2
        raise ValueError(f"a message of {buffer.tell()} bytes; the limit is {limit_mb} MB")
    return buffer.getvalue()


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, text: Callable[[int, str], HashedText]) -> None:
        super().__init__(BytesIO(content))
        self._text = text

    def persistent_load(self, reference: tuple[int, str]) -> HashedText:
        """Return the run's text."""
        return self._text(*reference)


def _error_named(name: str, text: str) -> Exception:
    """Return an exception of a class that only the other process has."""
    kind: Callable[[str], Exception] = type(name, (Exception,), {})
    return kind(text)


class _SchemaProxy(RootModel[Any]):
    """Accepts any JSON; the script's own class validates it (``ChatRequest.check``)."""

    schema_text: ClassVar[str] = "{}"

    @classmethod
    def model_json_schema(cls, *_arguments: Any, **_keywords: Any) -> dict[str, Any]:
        """Return the schema of the script's class."""
        schema: dict[str, Any] = json.loads(cls.schema_text)
        return schema


def schema_proxy(name: str, schema: object) -> type[BaseModel]:
    """Return a class with the name and schema of a script's class, the same for the same arguments."""
    return _made(name, json.dumps(schema))


@lru_cache(maxsize=256)
def _made(name: str, schema_text: str) -> type[BaseModel]:
    return type(name, (_SchemaProxy,), {"schema_text": schema_text, "__module__": __name__})


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Defer the alarm that interrupts a blocking script until the message is complete."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _End(ABC):
    """An end of the connection that asks questions and matches the replies by number."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    @abstractmethod
    def send(self, message: Message) -> None:
        """Send a message. Raises Exception: it cannot be sent."""

    async def ask(self, name: str, **arguments: Any) -> Any:
        """Return the reply to a question. Raises Exception: the error that the other end replied with."""
        number = next(self._numbers)
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self.send(Message("ask", arguments, name, number))
            return await reply
        except asyncio.CancelledError:
            self.send(Message("cancel", number=number))
            raise
        finally:
            del self._waiting[number]

    def take_reply(self, message: Message) -> None:
        """Give the reply to the caller that waits for it, unless the question was cancelled."""
        reply = self._waiting.get(message.number)
        if reply is None or reply.done():
            return
        if isinstance(message.content, Exception):
            reply.set_exception(message.content)
        else:
            reply.set_result(message.content)


class RpcClient(_End):
    """The script's end of the connection to the run.

    ``note`` returns once the message is sent. It may be called from any thread, and the message reaches the
    run even if the process crashes right afterwards.
    """

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._connection = Connection(fd)
        self._sending = threading.Lock()
        self._later: deque[Message] = deque()
        self._listening: tuple[asyncio.AbstractEventLoop, int, Callable[[], None]]
        os.register_at_fork(after_in_child=self._close_in_fork)

    def receive(self) -> Message:
        """Wait for a message."""
        message: Message = pickle.loads(self._connection.recv_bytes())
        return message

    def listen(self, answer: Callable[..., Any]) -> None:
        """Receive messages from now on, in the running event loop; ``answer`` answers questions."""

        def take() -> None:
            try:
                with _not_interrupted():
                    message = self.receive()
                if message.kind == "reply":
                    self.take_reply(message)
                elif message.kind == "ask":
                    value = _value_or_error(answer, message.content)
                    self.send(Message("reply", value, number=message.number))
            except BaseException:
                # The run is gone, or a reply is lost and the task that awaits it would never continue.
                os._exit(1)

        loop = asyncio.get_running_loop()
        self._listening = (loop, threading.get_ident(), take)
        loop.add_reader(self._fd, take)

    def wait_until_closed(self) -> None:
        """Return once the run has closed its end, and so has read everything."""
        with suppress(OSError, EOFError):
            while True:
                self._connection.recv_bytes()

    def ask_now(self, name: str, **arguments: Any) -> Any:
        """Return what ``ask`` does to code that cannot await, in any thread; call after ``listen``."""
        loop, thread, take = self._listening
        if threading.get_ident() != thread:
            return asyncio.run_coroutine_threadsafe(self.ask(name, **arguments), loop).result()
        number = next(self._numbers)
        reply = self._waiting[number] = loop.create_future()
        self.send(Message("ask", arguments, name, number))
        while not reply.done():
            take()
        del self._waiting[number]
        return reply.result()

    def note(self, name: str, **arguments: Any) -> None:
        """Send a message that needs no reply."""
        self.send(Message("note", arguments, name))

    def note_later(self, name: str, **arguments: Any) -> None:
        """Send a message together with the next one: for finalizers, which must not wait."""
        self._later.append(Message("note", arguments, name))

    def send(self, message: Message) -> None:
        """Send a message, and those that were kept for it."""
        content = encoded(message)
        with self._sending, _not_interrupted():
            if self._connection.closed:
                return
            while self._later:
                self._connection.send_bytes(encoded(self._later.popleft()))
            self._connection.send_bytes(content)

    def _close_in_fork(self) -> None:
        """Close the copy of a process that the script forked: messages of two processes would mix."""
        self._sending = threading.Lock()
        self._connection.close()


def _value_or_error(answer: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    try:
        return answer(**arguments)
    except Exception as error:  # a template's own code may raise anything: the question fails with that
        return error


# Asks the script's process.
AskScript = Callable[..., Awaitable[Any]]


class Service(Protocol):
    """The part of a run that serves a script's process: questions and notes name its other methods."""

    def text(self, blob: int, sha256: str) -> HashedText:
        """Return the text that a message refers to. Raises KeyError: there is none."""


class RpcConnection(_End):
    """The run's end of the connection to one script's process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._questions: dict[int, asyncio.Task[None]] = {}

    def send(self, message: Message) -> None:
        """Queue a message; the event loop sends it."""
        content = encoded(message)
        self._writer.write(_LENGTH.pack(len(content)) + content)

    async def served(self, service: Service) -> Any:
        """Serve until the process sends its last message, and return it; ``None`` where it ends without one.

        Raises:
            Exception: it sent an invalid message.
        """
        while True:
            try:
                [length] = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
                content = await self._reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            message: Message = _Unpickler(content, service.text).load()
            match message.kind:
                case "done":
                    return message.content
                case "reply":
                    self.take_reply(message)
                case "cancel":
                    if task := self._questions.get(message.number):
                        task.cancel()
                case "ask":
                    task = asyncio.create_task(self._reply(message, service))
                    self._questions[message.number] = task
                    task.add_done_callback(partial(self._forget, message.number))
                case "note":
                    getattr(service, message.name)(**message.content)

    async def close(self) -> None:
        """Cancel all questions."""
        tasks = list(self._questions.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()

    def _forget(self, number: int, _task: asyncio.Task[None]) -> None:
        self._questions.pop(number, None)

    async def _reply(self, message: Message, service: Service) -> None:
        try:
            value = await getattr(service, message.name)(**message.content)
            self.send(Message("reply", value, number=message.number))
        except Exception as error:
            # The script gets the error, as it does in the process of the run.
            if not isinstance(error, Mind2Web2Error):
                log.debug("a question failed name=%s", message.name, exc_info=error)
            self.send(Message("reply", error, number=message.number))
        # A process that has ended needs no reply; ``served`` notices that.
        with suppress(ConnectionError):
            await self._writer.drain()
