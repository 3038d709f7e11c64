"""Both ends of the connection between a run and the process of a script.

Messages are JSON. The run validates what it receives by the annotations of the method that serves
it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, partial
from multiprocessing.connection import Connection
from typing import Any, Literal, NoReturn, Protocol, TypeVar

from pydantic import BaseModel, TypeAdapter, validate_call

from mind2web2 import errors
from mind2web2.errors import EvalScriptError, MachineError, Mind2Web2Error
from mind2web2.judge.protocol import STOPPED
from mind2web2.utils.aio import end_all
from mind2web2.utils.moments import ClockReading

# The limit for a message to the run: thirty screenshots, or a tree of a hundred thousand nodes.
MAX_MESSAGE_BYTES = 64 * 1024**2
# The limit for questions without a reply yet, each with ``_TASK_BYTES`` for its task, and for
# replies that a script's process does not read.
MAX_WAITING_BYTES = 1_000_000_000
_TASK_BYTES = 10_000
_STREAM_BYTES = 1024**2
# The limit for an error's text, and for a validation error in a judge's reply.
MAX_REASON_CHARS = 20_000
# The limits for a script's failure, which a table shows, and for the name of its class.
_MAX_FAILURE_CHARS = 2_000
_MAX_NAME_CHARS = 100
# The package's log, and the beginning of its loggers' names.
PACKAGE = "mind2web2"
# The length that ``Connection.send_bytes`` puts before each message.
_LENGTH = struct.Struct("!i")

# A rubric tree 1,000 deep takes 2,000 to 5,000 levels of recursion as JSON.
_LEVELS = 10_000

Method = TypeVar("Method", bound=Callable[..., Any])


def allow_deep_trees() -> None:
    """Raise this process's recursion limit: reading and writing a tree takes some levels a node."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _LEVELS))


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Args:
        content: arguments of a question or note; the value or ``Failure`` that replies to a
            question.
        name: of the method that serves a question or note.
        number: of the question that is asked, replied to or cancelled.
    """

    kind: Literal["job", "ask", "reply", "failure", "cancel", "note", "done"]
    content: Any = None
    name: str = ""
    number: int = 0


@dataclass(frozen=True)
class Failure:
    """An error on its way: the name of its class, and its text."""

    name: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return an error as it travels."""
        # Subclasses are the sender's own; the message says what they mean.
        kind = EvalScriptError if isinstance(error, EvalScriptError) else type(error)
        return cls(kind.__name__, str(error)[:MAX_REASON_CHARS])

    def of_script(self) -> EvalScriptError:
        """Return the error that it is in the run, whatever name the script's process sends.

        A failure of the judge, the disk or the machine is noted where it happens, which is in the
        run.
        """
        text = self.text[:_MAX_FAILURE_CHARS]
        if self._ours() is not None:
            return EvalScriptError(text)
        return EvalScriptError(f"{self.name[:_MAX_NAME_CHARS]}: {text}")

    def of_run(self) -> Exception:
        """Return the error that it is in the script's process; the run sends only our own."""
        ours = self._ours() or MachineError
        return ours(self.text)

    def _ours(self) -> type[Mind2Web2Error] | None:
        ours = getattr(errors, self.name, None)
        if isinstance(ours, type) and issubclass(ours, Mind2Web2Error):
            return ours
        return None


@dataclass(frozen=True)
class Question:
    """A question to the run.

    Args:
        key: a hash of the rest; equal questions have one reply.
        name: of the method of the run that answers it.
        template: the number of the script's class that a judge's reply is to fill; no part of the
            key.
    """

    key: str
    name: str
    arguments: dict[str, Any]
    template: int | None = None


@dataclass(frozen=True)
class Reply:
    """The reply to a question: a value as JSON, or a failure."""

    value: Any = None
    failure: Failure | None = None


@dataclass(frozen=True)
class Done:
    """The content of the last message of a pass.

    Args:
        used: the keys of the questions whose replies the script has got, in the order of use.
        certain: those of them that come before the first stand-in.
        is_open: the script has got stand-ins, so the rest is not a result.
        first_open: the key of the first question without a reply, which the script asks in any
            case.
        program_order: why the script has to run in program order; ``None`` if it need not.
        missing: the questions without a reply that the pass went on without.
        notes: those of a pass, which count only if it is the result.
        failure: why there is no result.
        looked_up: pages that the script looked for in the cache.
        captured: pages that it captured itself.
        is_listed: it read the list of stored pages.
        clock: when it ran.
    """

    result: Any = None
    failure: Failure | None = None
    looked_up: list[str] = field(default_factory=list)
    captured: list[str] = field(default_factory=list)
    is_listed: bool = False
    clock: ClockReading | None = None
    used: list[str] = field(default_factory=list)
    certain: list[str] = field(default_factory=list)
    is_open: bool = False
    first_open: str | None = None
    program_order: str | None = None
    missing: list[Question] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def prepare(*kinds: Any) -> None:
    """Make ready what ``validate`` needs for these types, which takes milliseconds for each."""
    for kind in (Message, Failure, *kinds):
        _adapter(kind)


def validate(kind: Any, content: Any) -> Any:
    """Return received content as an object of a type, which may be a union. Raises ValueError."""
    return _adapter(kind).validate_python(content)


def encode(message: Message) -> bytes:
    """Return a message as JSON.

    Raises:
        TypeError, ValueError, RecursionError: it holds values that are not JSON.
    """
    # ``json.loads`` accepts halves of characters too.
    return encode_value(message).encode(errors="surrogatepass")


def encode_value(value: Any) -> str:
    """Return a value as JSON. Raises TypeError, ValueError, RecursionError."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return the fields of a model or of one of our objects. Raises TypeError."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    kind = type(value)
    if is_dataclass(kind) and kind.__module__.startswith("mind2web2."):
        return {name: getattr(value, name) for name in _field_names(kind)}
    raise TypeError(f"a {kind.__name__} cannot be sent to the run")


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def decode(content: bytes) -> Message:
    """Return a received message. Raises ValueError, RecursionError."""
    message: Message = validate(Message, json.loads(content))
    return message


_served: set[Callable[..., Any]] = set()


def served(method: Method) -> Method:
    """Let a script's process call a method of the run; its arguments are validated."""
    # Types are made ready at the first call. That takes milliseconds, and a run that reuses its
    # results makes no call.
    checked = validate_call(config={"defer_build": True})(method)
    _served.add(checked)
    return checked


def served_method(service: object, name: str) -> Callable[..., Any]:
    """Return the method that serves a message. Raises ValueError."""
    method = getattr(type(service), name, None)
    if method not in _served:
        raise ValueError(f"{name!r} is served by no method")
    return partial(method, service)


def take_note(service: object, note: Message) -> None:
    """Call the method that takes a note. Raises ValueError, TypeError: it is invalid."""
    served_method(service, note.name)(**note.content)


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Defer the alarm that interrupts a blocking script until the message is complete."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _End:
    """An end of the connection that asks questions and matches the replies by number.

    Args:
        error_of: returns the error that the other end's failure is here.
    """

    def __init__(self, error_of: Callable[[Failure], Exception]) -> None:
        self._error_of = error_of
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    def send(self, message: Message) -> None:
        """Send a message. Raises Exception: it cannot be sent."""
        raise NotImplementedError

    async def ask(self, name: str, kind: Any, **arguments: Any) -> Any:
        """Return the reply to a question.

        Raises Exception: the error that the other end replied with.
        """
        number = next(self._numbers)
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self.send(Message("ask", arguments, name, number))
            return validate(kind, await reply)
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
        if message.kind == "failure":
            reply.set_exception(self._error_of(validate(Failure, message.content)))
        else:
            reply.set_result(message.content)


class RpcClient(_End):
    """The script's end of the connection to the run.

    ``note`` returns once the message is sent. It may be called from any thread, and the message
    reaches the run even if the process crashes right afterwards.
    """

    def __init__(self, fd: int) -> None:
        super().__init__(Failure.of_run)
        self._fd = fd
        self._connection = Connection(fd)
        self._sending = threading.Lock()
        # The notes of a pass, which go along with its end.
        self.held: list[Message] | None = None
        self._listening: tuple[asyncio.AbstractEventLoop, int, Callable[[], None]]
        os.register_at_fork(after_in_child=self._close_in_fork)

    def receive(self) -> Message:
        """Wait for a message."""
        return decode(self._connection.recv_bytes())

    def listen(self, answer: Callable[..., Any]) -> None:
        """Receive messages from now on, in the running event loop; ``answer`` answers questions."""

        def take() -> None:
            try:
                with _not_interrupted():
                    message = self.receive()
                if message.kind in ("reply", "failure"):
                    self.take_reply(message)
                elif message.kind == "ask":
                    self.send(_reply_to(answer, message))
            except BaseException:
                # The run is gone, or a reply is lost and the task that awaits it would never
                # continue.
                os._exit(1)

        loop = asyncio.get_running_loop()
        self._listening = (loop, threading.get_ident(), take)
        loop.add_reader(self._fd, take)

    def ask_now(self, name: str, kind: Any, **arguments: Any) -> Any:
        """Return what ``ask`` does to code that cannot await, in any thread.

        Call after ``listen``.
        """
        loop, thread, _ = self._listening
        if threading.get_ident() != thread:
            return asyncio.run_coroutine_threadsafe(
                self.ask(name, kind, **arguments), loop
            ).result()
        return self.awaited_now(self.send_question(name, **arguments), kind)

    def send_question(self, name: str, **arguments: Any) -> int:
        """Send a question and return its number, for ``awaited_now``."""
        number = next(self._numbers)
        self._waiting[number] = self._listening[0].create_future()
        self.send(Message("ask", arguments, name, number))
        return number

    def awaited_now(self, number: int, kind: Any) -> Any:
        """Return the reply to a question that was sent; nothing else goes on meanwhile.

        Raises:
            Exception: the error that the run replied with.
        """
        _, _, take = self._listening
        reply = self._waiting[number]
        while not reply.done():
            take()
        del self._waiting[number]
        return validate(kind, reply.result())

    def note(self, name: str, **arguments: Any) -> None:
        """Send a message that needs no reply; in a pass, keep it until the end."""
        message = Message("note", arguments, name)
        if self.held is None:
            self.send(message)
        else:
            self.held.append(message)

    def answer_until_closed(self, answer: Callable[..., Any]) -> NoReturn:
        """Answer the questions of the run until it closes its end, then end the process."""
        with suppress(BaseException):
            while True:
                message = self.receive()
                if message.kind == "ask":
                    self.send(_reply_to(answer, message))
        os._exit(0)

    def send(self, message: Message) -> None:
        """Send a message. Raises ValueError: it is too long."""
        content = encode(message)
        if len(content) > MAX_MESSAGE_BYTES:
            limit_mb = MAX_MESSAGE_BYTES // 1024**2
            raise ValueError(f"a message of {len(content)} bytes; the limit is {limit_mb} MB")
        with self._sending, _not_interrupted():
            if not self._connection.closed:
                self._connection.send_bytes(content)

    def _close_in_fork(self) -> None:
        """Close the copy of a process that the script forked, as messages of two would mix."""
        self._sending = threading.Lock()
        self._connection.close()


def _reply_to(answer: Callable[..., Any], message: Message) -> Message:
    try:
        return Message("reply", answer(**message.content), number=message.number)
    except (
        Exception
    ) as error:  # a template's own code may raise anything: the question fails with that
        return Message("failure", Failure.of(error), number=message.number)


class Service(Protocol):
    """The ``served`` methods of a run for a script's process, and what their errors become."""

    def failure_of(self, question: str, error: Exception) -> Mind2Web2Error:
        """Return the failure that an unforeseen error at a question is."""


class RpcConnection(_End):
    """The run's end of the connection to one script's process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(Failure.of_script)
        self._reader = reader
        self._writer = writer
        self._questions: dict[int, asyncio.Task[None]] = {}
        self._waiting_bytes = 0

    @classmethod
    async def open(cls, end: socket.socket) -> RpcConnection:
        """Return the connection by our end of a pair of sockets."""
        return cls(*await asyncio.open_connection(sock=end, limit=_STREAM_BYTES))

    def send(self, message: Message) -> None:
        """Queue a message; the event loop sends it."""
        content = encode(message)
        self._writer.write(_LENGTH.pack(len(content)) + content)

    async def serve(self, service: Service) -> Done | None:
        """Serve until the process sends its result; return it, or ``None`` if it ends without one.

        Args:
            service: its ``served`` methods answer the questions and take the notes.

        Raises:
            EvalScriptError: it asks too much at once.
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
            message = decode(content)
            match message.kind:
                case "done":
                    done: Done = validate(Done, message.content)
                    return done
                case "reply" | "failure":
                    self.take_reply(message)
                case "cancel":
                    if task := self._questions.get(message.number):
                        # The script's process says if that is a failure.
                        task.cancel(STOPPED)
                case "ask":
                    self._begin(message, len(content) + _TASK_BYTES, service)
                case "note":
                    take_note(service, message)

    def _check_read(self) -> None:
        if self._writer.transport.get_write_buffer_size() > MAX_WAITING_BYTES:
            limit_mb = MAX_WAITING_BYTES / 1e6
            raise EvalScriptError(f"the script left {limit_mb:g} MB of replies unread")

    def close(self) -> None:
        """Close the connection, whatever the process has not read yet."""
        self._writer.transport.abort()

    async def cancel_questions(self) -> None:
        """Cancel all questions that are not answered yet."""
        await end_all(self._questions.values(), STOPPED)

    def _begin(self, message: Message, size_bytes: int, service: Service) -> None:
        """Answer a question in a task of its own."""
        number = message.number
        if number in self._questions:
            raise ValueError(f"two questions have the number {number}")
        self._waiting_bytes += size_bytes
        if self._waiting_bytes > MAX_WAITING_BYTES:
            limit_mb = MAX_WAITING_BYTES / 1e6
            raise EvalScriptError(
                f"asks more than {limit_mb:g} MB at once: ask fewer questions at the same time"
            )
        task = asyncio.create_task(self._reply(message, service))
        self._questions[number] = task
        task.add_done_callback(partial(self._forget, number, size_bytes))

    def _forget(self, number: int, size_bytes: int, _task: asyncio.Task[None]) -> None:
        del self._questions[number]
        self._waiting_bytes -= size_bytes

    async def _reply(self, message: Message, service: Service) -> None:
        try:
            value = await served_method(service, message.name)(**message.content)
            self._check_read()
            self.send(Message("reply", value, number=message.number))
        except Exception as error:
            # The script gets the error, as it would from a judge of its own.
            failure: Exception = error
            if not isinstance(error, Mind2Web2Error):
                failure = service.failure_of(message.name, error)
            self.send(Message("failure", Failure.of(failure), number=message.number))
        # A process that has ended needs no reply; ``served`` notices that.
        with suppress(ConnectionError):
            await self._writer.drain()
