"""What a run and the process of a script say to each other: JSON objects in frames of bounded size.

Nothing is ever unpickled: a frame is text of a stranger, to be checked before it is used.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
import struct
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache, lru_cache
from json import dumps, loads
from typing import Any, ClassVar, get_type_hints

from pydantic import BaseModel, RootModel, TypeAdapter, create_model

from mind2web2 import errors
from mind2web2.errors import Mind2Web2Error
from mind2web2.judge.usage import JudgeLedger
from mind2web2.pages.captures import DoubtfulPageError
from mind2web2.pages.prepared import PreparedPage
from mind2web2.prompts import HashedText
from mind2web2.scripts.inputs import ScriptInputs

# Thirty screenshots, or a tree of a hundred thousand nodes.
MAX_FRAME_BYTES = 64 * 1024**2
# Of an error's text, and of what is wrong with a judge's reply.
MAX_REASON_CHARS = 20_000
LENGTH = struct.Struct(">I")

# What is said: a kind with what belongs to it; questions have a number, which their reply repeats.
Message = dict[str, Any]


class UnusableMessageError(Mind2Web2Error):
    """The process of a script sent, or was about to send, what is no message."""


def frame_of(message: Message) -> bytes:
    """Return a message as it is sent.

    Raises:
        UnusableMessageError: it is longer than is taken.
        TypeError: it holds what JSON cannot.
    """
    content = dumps(message, separators=(",", ":"), default=_plain).encode()
    if len(content) > MAX_FRAME_BYTES:
        raise UnusableMessageError(
            f"a message of {len(content)} bytes is longer than the {MAX_FRAME_BYTES} that are taken"
        )
    return LENGTH.pack(len(content)) + content


def message_in(content: bytes) -> Message:
    """Return the message that a frame holds.

    Raises:
        UnusableMessageError: it is none.
    """
    try:
        message = loads(content)
    except (ValueError, RecursionError) as error:
        raise UnusableMessageError(f"sent what is no JSON: {error}") from error
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise UnusableMessageError("sent JSON that is no message")
    return message


def checked_length(header: bytes) -> int:
    """Return the length of the frame that begins so.

    Raises:
        UnusableMessageError: it is longer than is taken.
    """
    length: int = LENGTH.unpack(header)[0]
    if length > MAX_FRAME_BYTES:
        raise UnusableMessageError(
            f"sent a message of {length} bytes, more than the {MAX_FRAME_BYTES} that are taken"
        )
    return length


class Frames:
    """Puts messages together from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def add(self, piece: bytes) -> Iterator[Message]:
        """Yield the messages that are complete with this piece."""
        self._buffer += piece
        while len(self._buffer) >= LENGTH.size:
            end = LENGTH.size + checked_length(bytes(self._buffer[: LENGTH.size]))
            if len(self._buffer) < end:
                return
            content = bytes(self._buffer[LENGTH.size : end])
            del self._buffer[:end]
            yield message_in(content)


def error_as_json(error: BaseException) -> Message:
    """Return an error by the name of its class and its text."""
    return {"name": type(error).__name__, "text": str(error)[:MAX_REASON_CHARS]}


def error_from(raw: object) -> Exception:
    """Return the error that was told; one of ours as what it is, another as an exception of that name."""
    told = raw if isinstance(raw, Mapping) else {}
    name, text = str(told.get("name", "Exception"))[:100], str(told.get("text", ""))[:MAX_REASON_CHARS]
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
    """The last message of a script's process.

    Args:
        error: why there is no result.
        looked_up: pages that the script has looked for in the cache.
        brought: pages that it has come to see there.
        is_listed: it has asked for the list of stored pages.
        inputs: what else it has read.
    """

    result: Any = None
    error: dict[str, Any] | None = None
    ledger: dict[str, Any] = {}
    looked_up: list[str] = []
    brought: list[str] = []
    is_listed: bool = False
    inputs: ScriptInputs = ScriptInputs()


def ledger_as_json(ledger: JudgeLedger) -> dict[str, Any]:
    """Return what JSON can hold of a ledger."""
    values = {field.name: getattr(ledger, field.name) for field in fields(ledger)}
    # Keys of JSON are texts.
    served = [[*who, count] for who, count in values.pop("served").items()]
    plain: dict[str, Any] = _PLAIN.dump_python(values, mode="json")
    return {**plain, "served": served}


def ledger_from(raw: Mapping[str, Any]) -> JudgeLedger:
    """Return the ledger.

    Raises:
        ValueError: it is none.
    """
    served = Counter({(model, backend): int(count) for model, backend, count in raw.get("served", ())})
    return _LEDGER.validate_python({**raw, "served": served})


_APART = {"text", "images"}


def fields_of(page: PreparedPage) -> dict[str, Any]:
    """Return a page's fields but for its text and images."""
    given = {field.name: getattr(page, field.name) for field in fields(page) if field.name not in _APART}
    return _model()(**given).model_dump(mode="json")


def page_from(raw: object, text: HashedText, images: tuple[HashedText, ...]) -> PreparedPage:
    """Return the page with these fields."""
    known = _model().model_validate(raw)
    given = {name: getattr(known, name) for name in _model().model_fields}
    return PreparedPage(**given, text=text, images=images)


@cache
def _model() -> type[BaseModel]:
    """Return a model of the page's own fields, so that none that is added is left behind."""
    hints = get_type_hints(PreparedPage)
    kept: dict[str, Any] = {field.name: (hints[field.name], ...) for field in fields(PreparedPage)}
    return create_model("PageFields", **{name: kind for name, kind in kept.items() if name not in _APART})


class _ToldTemplate(RootModel[Any]):
    """Takes any JSON; the script's own class has the last word (``ChatRequest.check``)."""

    schema_text: ClassVar[str] = "{}"

    @classmethod
    def model_json_schema(cls, *_arguments: Any, **_keywords: Any) -> dict[str, Any]:
        """Return the schema of the script's class."""
        schema: dict[str, Any] = json.loads(cls.schema_text)
        return schema


def told_template(name: str, schema: object) -> type[BaseModel]:
    """Return what stands for a script's class of this name and schema, the same for the same."""
    return _made(name, json.dumps(schema))


@lru_cache(maxsize=256)
def _made(name: str, schema_text: str) -> type[BaseModel]:
    return type(name, (_ToldTemplate,), {"schema_text": schema_text, "__module__": __name__})


# Of questions that wait for their reply: the run keeps them in its own memory.
MAX_WAITING_BYTES = 64 * 1024**2
_PIECE_BYTES = 1024**2

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
            except BaseException:
                # A reply is lost, and the task that awaits it would never continue.
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
