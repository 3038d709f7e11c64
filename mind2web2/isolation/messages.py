"""What a run and the process of a script say to each other: JSON objects in frames of bounded size.

Nothing is ever unpickled: a frame is text of a stranger, to be checked before it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from json import dumps, loads
from typing import Any

from pydantic import BaseModel

from mind2web2 import errors
from mind2web2.errors import Mind2Web2Error
from mind2web2.shared_captures import DoubtfulPageError

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
