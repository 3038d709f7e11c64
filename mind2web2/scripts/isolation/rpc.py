"""Both ends of the connection between a run and the process of a script.

Messages are JSON objects with the framing of ``multiprocessing``. Nothing is unpickled: they come from a
script that the run does not trust with its keys.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import signal
import struct
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, RootModel, TypeAdapter

from mind2web2 import errors
from mind2web2.errors import Mind2Web2Error
from mind2web2.judge.protocol import JudgeLedger
from mind2web2.pages.captures import DoubtfulPageError, PreparedPage
from mind2web2.prompts import HashedText
from mind2web2.scripts.inputs import ScriptInputs

# Thirty screenshots, or a tree of a hundred thousand nodes.
MAX_MESSAGE_BYTES = 64 * 1024**2
# Of an error's text, and of a validation error in a judge's reply.
MAX_REASON_CHARS = 20_000
# What ``Connection.send_bytes`` puts before each message.
_LENGTH = struct.Struct("!i")

log = logging.getLogger(__name__)

# A kind with its fields; questions have a number, which their reply repeats.
Message = dict[str, Any]


def encoded(message: Message) -> bytes:
    """Return a message as JSON.

    Raises:
        ValueError: it is too long, or contains itself.
        TypeError: it holds values that JSON cannot.
    """
    content = json.dumps(message, separators=(",", ":"), default=_plain).encode()
    if len(content) > MAX_MESSAGE_BYTES:
        raise ValueError(f"a message of {len(content)} bytes; the limit is {MAX_MESSAGE_BYTES // 1024**2} MB")
    return content


def error_as_json(error: BaseException) -> Message:
    """Return an error by the name of its class and its text."""
    return {"name": type(error).__name__, "text": str(error)[:MAX_REASON_CHARS]}


def error_from(raw: object) -> Exception:
    """Return the error that was sent; one of ours by its class, another as an exception of that name."""
    sent = raw if isinstance(raw, Mapping) else {}
    name, text = str(sent.get("name", "Exception"))[:100], str(sent.get("text", ""))[:MAX_REASON_CHARS]
    ours = DoubtfulPageError if name == DoubtfulPageError.__name__ else getattr(errors, name, None)
    if isinstance(ours, type) and issubclass(ours, Mind2Web2Error):
        return ours(text)
    foreign: Callable[[str], Exception] = type(name if name.isidentifier() else "Exception", (Exception,), {})
    return foreign(text)


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is not JSON serializable")


_LEDGER = TypeAdapter(JudgeLedger)
_PLAIN = TypeAdapter(dict[str, Any])


class Done(BaseModel):
    """The result message: the last of a script's process.

    Args:
        error: why there is no result.
        looked_up: pages that the script looked for in the cache.
        captured: pages that it captured itself.
        is_listed: it read the list of stored pages.
        inputs: the other inputs that it read.
    """

    result: Any = None
    error: dict[str, Any] | None = None
    ledger: dict[str, Any] = {}
    looked_up: list[str] = []
    captured: list[str] = []
    is_listed: bool = False
    inputs: ScriptInputs = ScriptInputs()


def ledger_as_json(ledger: JudgeLedger) -> dict[str, Any]:
    """Return what JSON can hold of a ledger."""
    values = {field.name: getattr(ledger, field.name) for field in fields(ledger)}
    # Keys of JSON are strings.
    served = [[*who, count] for who, count in values.pop("served").items()]
    plain: dict[str, Any] = _PLAIN.dump_python(values, mode="json")
    return {**plain, "served": served}


def ledger_from(raw: Mapping[str, Any]) -> JudgeLedger:
    """Return the ledger. Raises ValueError: it is none."""
    served = Counter({(model, backend): int(count) for model, backend, count in raw.get("served", ())})
    return _LEDGER.validate_python({**raw, "served": served})


_PAGE = TypeAdapter(PreparedPage)


def fields_of(page: PreparedPage) -> dict[str, Any]:
    """Return a page's fields but for its text and images."""
    given: dict[str, Any] = _PAGE.dump_python(page, mode="json", exclude={"text", "images"})
    return given


def page_from(raw: Mapping[str, Any], text: HashedText, images: tuple[HashedText, ...]) -> PreparedPage:
    """Return the page with these fields."""
    return _PAGE.validate_python({**raw, "text": text, "images": images})


def with_texts(message: Mapping[str, Any], change: Callable[[Any], Any]) -> Message:
    """Return a message for the judge with the text and image of each part changed."""
    content = message.get("content")
    if not isinstance(content, Sequence) or isinstance(content, str):
        return dict(message)
    return {**message, "content": [_with_texts(part, change) for part in content]}


def _with_texts(part: Any, change: Callable[[Any], Any]) -> Any:
    if not isinstance(part, Mapping):
        return part
    changed = {name: change(value) if name == "text" else value for name, value in part.items()}
    if isinstance(image := part.get("image_url"), Mapping) and "url" in image:
        changed["image_url"] = {**image, "url": change(image["url"])}
    return changed


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


class _Asking(ABC):
    """An end of the connection that asks questions and matches the replies by number."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    @abstractmethod
    def send(self, message: Message) -> None:
        """Send a message. Raises ValueError or TypeError: it cannot be sent."""

    async def ask(self, kind: str, **content: Any) -> Any:
        """Return the reply to a question. Raises Exception: the error that the other end replied with."""
        number = next(self._numbers)
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self.send({"kind": kind, "number": number, **content})
            return await reply
        except asyncio.CancelledError:
            self.send({"kind": "cancel", "question": number})
            raise
        finally:
            del self._waiting[number]

    def take_reply(self, message: Message) -> None:
        """Give the reply to the caller that waits for it, unless the question was cancelled."""
        reply = self._waiting.get(message["to"])
        if reply is None or reply.done():
            return
        if "error" in message:
            reply.set_exception(error_from(message["error"]))
        else:
            reply.set_result(message["value"])


class RpcClient(_Asking):
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

    def first_message(self) -> Message:
        """Wait for the first message."""
        message: Message = json.loads(self._connection.recv_bytes())
        return message

    def listen(self, answer: Callable[[Message], Message]) -> None:
        """Receive messages from now on, in the running event loop; ``answer`` replies to questions."""

        def receive() -> None:
            try:
                with _not_interrupted():
                    message: Message = json.loads(self._connection.recv_bytes())
                if message["kind"] == "reply":
                    self.take_reply(message)
                elif message["kind"] != "cancel":
                    self.note("reply", to=message["number"], **answer(message))
            except BaseException:
                # The run is gone, or a reply is lost and the task that awaits it would never continue.
                os._exit(1)

        loop = asyncio.get_running_loop()
        self._listening = (loop, threading.get_ident(), receive)
        loop.add_reader(self._fd, receive)

    def wait_until_closed(self) -> None:
        """Return once the run has closed its end, and so has read everything."""
        with suppress(OSError, EOFError):
            while True:
                self._connection.recv_bytes()

    def ask_now(self, kind: str, **content: Any) -> Any:
        """Return what ``ask`` does to code that cannot await, in any thread; call after ``listen``."""
        loop, thread, take = self._listening
        if threading.get_ident() != thread:
            return asyncio.run_coroutine_threadsafe(self.ask(kind, **content), loop).result()
        number = next(self._numbers)
        reply = self._waiting[number] = loop.create_future()
        self.send({"kind": kind, "number": number, **content})
        while not reply.done():
            take()
        del self._waiting[number]
        return reply.result()

    def note(self, kind: str, **content: Any) -> None:
        """Send a message that needs no reply."""
        self.send({"kind": kind, **content})

    def note_later(self, kind: str, **content: Any) -> None:
        """Send a message together with the next one: for finalizers, which must not wait."""
        self._later.append({"kind": kind, **content})

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


# Asks the script's process.
AskScript = Callable[..., Awaitable[Any]]


class Service(Protocol):
    """The part of a run that serves a script's process."""

    async def answered(self, message: Message, ask_script: AskScript) -> Any:
        """Return the reply to a question; the script's process raises the same errors."""

    def note(self, message: Message) -> None:
        """Handle a message that needs no reply."""


class RpcConnection(_Asking):
    """The run's end of the connection to one script's process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: Service) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._service = service
        self._questions: dict[int, asyncio.Task[None]] = {}

    def send(self, message: Message) -> None:
        """Queue a message; the event loop sends it."""
        content = encoded(message)
        self._writer.write(_LENGTH.pack(len(content)) + content)

    async def result_message(self) -> Message | None:
        """Serve until the process sends its result message; ``None`` where it ends without one.

        Raises:
            ValueError, KeyError, TypeError: it sent an invalid message.
        """
        while True:
            try:
                [length] = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
                message: Message = json.loads(await self._reader.readexactly(length))
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            match message["kind"]:
                case "done":
                    return message
                case "reply":
                    self.take_reply(message)
                case "cancel":
                    if task := self._questions.get(message["question"]):
                        task.cancel()
                case _ if "number" in message:
                    self._begin(message, int(message["number"]))
                case _:
                    self._service.note(message)

    async def close(self) -> None:
        """Cancel all questions."""
        tasks = list(self._questions.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()

    def _begin(self, message: Message, number: int) -> None:
        task = self._questions[number] = asyncio.create_task(self._answer(message, number))
        task.add_done_callback(lambda _: self._questions.pop(number, None))

    async def _answer(self, message: Message, number: int) -> None:
        reply: Message = {"kind": "reply", "to": number}
        try:
            self.send({**reply, "value": await self._service.answered(message, self.ask)})
        except Exception as error:
            # The script gets the error, as it does in the process of the run.
            if not isinstance(error, Mind2Web2Error):
                log.debug("a question failed kind=%s", message["kind"], exc_info=error)
            self.send({**reply, "error": error_as_json(error)})
        # A process that has ended needs no reply; ``result_message`` notices that.
        with suppress(ConnectionError):
            await self._writer.drain()
