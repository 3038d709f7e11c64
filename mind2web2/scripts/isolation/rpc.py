"""Messages between a run and the process of a script: JSON objects with the framing of ``multiprocessing``.

Nothing is unpickled: messages come from a script that the run does not trust with its keys.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import struct
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache, lru_cache
from multiprocessing.connection import Connection
from typing import Any, ClassVar, get_type_hints

from pydantic import BaseModel, RootModel, TypeAdapter, create_model

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
LENGTH = struct.Struct("!i")

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
    """Return a model with every field of the page, also of those added later."""
    hints = get_type_hints(PreparedPage)
    kept: dict[str, Any] = {field.name: (hints[field.name], ...) for field in fields(PreparedPage)}
    return create_model("PageFields", **{name: kind for name, kind in kept.items() if name not in _APART})


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


# Answers a question of the run's.
Answering = Callable[[Message], Message]


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Defer the alarm that interrupts a blocking script until the message is complete."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class RpcClient:
    """The script's end of the connection to the run.

    ``note`` returns once the message is sent. It may be called from any thread, and the message reaches the
    run even if the process crashes right afterwards.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._connection = Connection(fd)
        self._sending = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._later: deque[Message] = deque()
        self._listening: tuple[asyncio.AbstractEventLoop, int, Answering] | None = None
        os.register_at_fork(after_in_child=self._close_in_fork)

    def first_message(self) -> Message:
        """Wait for the first message."""
        message: Message = json.loads(self._connection.recv_bytes())
        return message

    def listen(self, answering: Answering) -> None:
        """Receive messages from now on, in the running event loop."""

        def receive() -> None:
            try:
                with _not_interrupted():
                    content = self._connection.recv_bytes()
                self._take(json.loads(content), answering)
            except BaseException:
                # The run is gone, or a reply is lost and the task that awaits it would never continue.
                os._exit(1)

        loop = asyncio.get_running_loop()
        self._listening = (loop, threading.get_ident(), answering)
        loop.add_reader(self._fd, receive)

    def wait_until_closed(self) -> None:
        """Return once the run has closed its end, and so has read everything."""
        with suppress(OSError, EOFError):
            while True:
                self._connection.recv_bytes()

    async def ask(self, kind: str, **content: Any) -> Any:
        """Return the run's reply to a question. Raises Exception: the error that the run replied with."""
        number = next(self._numbers)
        question = encoded({"kind": kind, "number": number, **content})
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send(question)
        try:
            return await reply
        except asyncio.CancelledError:
            self.note("cancel", question=number)
            raise
        finally:
            del self._waiting[number]

    def ask_now(self, kind: str, **content: Any) -> Any:
        """Return the run's reply to code that cannot await, in any thread; call after ``listen``.

        Raises Exception: the error that the run replied with.
        """
        assert self._listening is not None
        loop, thread, answering = self._listening
        if threading.get_ident() != thread:
            return asyncio.run_coroutine_threadsafe(self.ask(kind, **content), loop).result()
        number = next(self._numbers)
        self._send(encoded({"kind": kind, "number": number, **content}))
        while True:
            with _not_interrupted():
                message = json.loads(self._connection.recv_bytes())
            if message["kind"] != "reply" or message["to"] != number:
                self._take(message, answering)
            elif "error" in message:
                raise error_from(message["error"])
            else:
                return message["value"]

    def note(self, kind: str, **content: Any) -> None:
        """Send a message that needs no reply."""
        self._send(encoded({"kind": kind, **content}))

    def note_later(self, kind: str, **content: Any) -> None:
        """Send a message together with the next one: for finalizers, which must not wait."""
        self._later.append({"kind": kind, **content})

    def _take(self, message: Message, answering: Answering) -> None:
        if message["kind"] != "reply":
            self.note("reply", to=message["number"], **answering(message))
            return
        reply = self._waiting.get(message["to"])
        if reply is None or reply.done():
            return  # the question was cancelled
        if "error" in message:
            reply.set_exception(error_from(message["error"]))
        else:
            reply.set_result(message["value"])

    def _send(self, content: bytes) -> None:
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
