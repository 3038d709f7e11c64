"""Both ends of the connection between a run and the process of a script.

Messages are pickled, with the framing of ``multiprocessing``. The run makes only plain values and
validated message objects of the bytes that it receives: a script's process cannot name functions to call.
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
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache, partial
from io import BytesIO
from multiprocessing.connection import Connection
from typing import Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, InstanceOf, RootModel, TypeAdapter

from mind2web2 import errors
from mind2web2.errors import Mind2Web2Error
from mind2web2.judge.protocol import JudgeLedger, QuestionContext, Rejection
from mind2web2.judge.services import ServiceRequest
from mind2web2.judge.store import ServiceAnswer
from mind2web2.llm_client.chat import Usage
from mind2web2.pages.captures import DoubtfulPageError
from mind2web2.pages.prepared_page import PageSettings
from mind2web2.prompts import HashedText
from mind2web2.scripts.inputs import ClockReading, ScriptInputs

# Thirty screenshots, or a tree of a hundred thousand nodes.
MAX_MESSAGE_BYTES = 64 * 1024**2
# Of an error's text, and of a validation error in a judge's reply.
MAX_REASON_CHARS = 20_000
# The length that ``Connection.send_bytes`` puts before each message.
_LENGTH = struct.Struct("!i")
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


@dataclass
class Done:
    """The content of a process's last message.

    Args:
        error: why there is no result.
        looked_up: pages that the script looked for in the cache.
        captured: pages that it captured itself.
        is_listed: it read the list of stored pages.
        inputs: the other inputs that it read.
    """

    result: Any = None
    error: InstanceOf[Exception] | None = None
    ledger: JudgeLedger = field(default_factory=JudgeLedger)
    looked_up: set[str] = field(default_factory=set)
    captured: list[str] = field(default_factory=list)
    is_listed: bool = False
    inputs: ScriptInputs = field(default_factory=ScriptInputs)


_RECEIVED = {
    kind.__name__: TypeAdapter[Any](kind)
    for kind in (
        *(
            Message,
            Done,
            JudgeLedger,
            Rejection,
            Usage,
            ServiceAnswer,
            ScriptInputs,
            ClockReading,
        ),
        *(QuestionContext, PageSettings, ServiceRequest),
    )
}


class PageText(HashedText):
    """A page's text, or a name for an image of it; messages to the run contain its reference in the run."""

    reference: tuple[int, str]
    owner: object


class _RunPickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Return how to make a value that the other process has no class for, or one without its digest."""
        if isinstance(value, Mind2Web2Error):
            return type(value), (str(value)[:MAX_REASON_CHARS],)
        if isinstance(value, BaseException):
            return _error_of, (type(value).__name__, str(value)[:MAX_REASON_CHARS])
        return (str, (str(value),)) if type(value) is HashedText else NotImplemented


class _ScriptPickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        """Return the reference that stands for a text of the run."""
        return value.reference if isinstance(value, PageText) else None

    def reducer_override(self, value: Any) -> Any:
        """Return how the run makes the value, as a plain value where it extends one. Raises TypeError."""
        kind = type(value)
        if any(value is called for called in _CALLED.values()):
            return NotImplemented
        if isinstance(value, BaseException):
            return _error_of, (kind.__name__, str(value)[:MAX_REASON_CHARS])
        if kind.__name__ in _RECEIVED and kind.__module__.startswith("mind2web2."):
            names = (
                [each.name for each in fields(value)]
                if is_dataclass(value)
                else value.model_fields_set
            )
            return _made, (
                kind.__name__,
                {name: getattr(value, name) for name in names},
            )
        if isinstance(value, BaseModel):
            return dict, (
                value.model_dump(mode="json", by_alias=True, exclude_unset=True),
            )
        for plain, made in _PLAIN.items():
            if isinstance(value, plain):
                return plain, (made(value),)
        raise TypeError(f"a {kind.__name__} cannot be sent to the run")


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, text: Callable[[int, str], HashedText]) -> None:
        super().__init__(BytesIO(content))
        self._text = text

    def find_class(self, module: str, name: str) -> Any:
        """Return a function that may be called to make a received value. Raises UnpicklingError."""
        if (module, name) not in _CALLED:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a message")
        found = _CALLED[module, name]
        # A message may change the attributes of an object in it, but not those of a builtin class.
        return found if isinstance(found, type) else partial(found)

    def persistent_load(self, reference: tuple[int, str]) -> HashedText:
        """Return the run's text."""
        return self._text(*reference)


def encoded(message: Message, pickler: type[pickle.Pickler] = _RunPickler) -> bytes:
    """Return a pickled message.

    Raises:
        ValueError: it is too long.
        Exception: it holds values that cannot be pickled.
    """
    buffer = BytesIO()
    pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(message)
    if buffer.tell() > MAX_MESSAGE_BYTES:
        limit_mb = MAX_MESSAGE_BYTES // 1024**2
        raise ValueError(
            f"a message of {buffer.tell()} bytes; the limit is {limit_mb} MB"
        )
    return buffer.getvalue()


def encoded_by_script(message: Message) -> bytes:
    """Return a message for the run. Raises what ``encoded`` raises."""
    return encoded(message, _ScriptPickler)


def decoded_by_run(content: bytes, text: Callable[[int, str], HashedText]) -> Message:
    """Return a message of a script's process; ``text`` returns the run's text for a reference.

    Raises:
        Exception: it is invalid.
    """
    message = _Unpickler(content, text).load()
    if not isinstance(message, Message) or message.name.startswith("_"):
        raise pickle.UnpicklingError("no message")
    if message.kind == "done" and not isinstance(message.content, Done):
        raise pickle.UnpicklingError("no result message")
    return message


def _made(name: str, values: dict[str, Any]) -> Any:
    """Return a validated object of a message. Raises KeyError, ValueError."""
    return _RECEIVED[name].validate_python(values)


def _error_of(name: str, text: str) -> Exception:
    """Return one of our errors by the name of its class, another as an exception of that name."""
    ours = (
        DoubtfulPageError
        if name == DoubtfulPageError.__name__
        else getattr(errors, name, None)
    )
    if isinstance(ours, type) and issubclass(ours, Mind2Web2Error):
        return ours(text)
    foreign: Callable[[str], Exception] = type(
        name if name.isidentifier() else "Exception", (Exception,), {}
    )
    return foreign(text)


# Functions that a message of a script's process may name.
_CALLED: dict[tuple[str, str], Callable[..., Any]] = {
    **{("builtins", plain.__name__): plain for plain in _PLAIN},
    (__name__, _made.__name__): _made,
    (__name__, _error_of.__name__): _error_of,
}


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
    return _proxy(name, json.dumps(schema))


@lru_cache(maxsize=256)
def _proxy(name: str, schema_text: str) -> type[BaseModel]:
    return type(
        name, (_SchemaProxy,), {"schema_text": schema_text, "__module__": __name__}
    )


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
            return asyncio.run_coroutine_threadsafe(
                self.ask(name, **arguments), loop
            ).result()
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
        content = encoded_by_script(message)
        with self._sending, _not_interrupted():
            if self._connection.closed:
                return
            while self._later:
                self._connection.send_bytes(encoded_by_script(self._later.popleft()))
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


class Service(Protocol):
    """The part of a run that serves a script's process: questions and notes name its other methods."""

    def text(self, blob: int, sha256: str) -> HashedText:
        """Return the text that a message refers to. Raises KeyError: there is none."""


class RpcConnection(_End):
    """The run's end of the connection to one script's process."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._questions: dict[int, asyncio.Task[None]] = {}

    def send(self, message: Message) -> None:
        """Queue a message; the event loop sends it."""
        content = encoded(message)
        self._writer.write(_LENGTH.pack(len(content)) + content)

    async def served(self, service: Service) -> Done | None:
        """Serve until the process sends its result; return that, or ``None`` where it ends without one.

        Raises:
            Exception: it sent an invalid message.
        """
        while True:
            try:
                [length] = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
                if length > MAX_MESSAGE_BYTES:
                    raise ValueError(f"a message of {length} bytes")
                content = await self._reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            message = decoded_by_run(content, service.text)
            match message.kind:
                case "done":
                    done: Done = message.content
                    return done
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
