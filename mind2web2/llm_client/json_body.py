"""The JSON body of a request, assembled from encoded pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from mind2web2.prompts import HashedText

Piece = bytes | HashedText


class JsonBody:
    """The JSON body of a request, on one line.

    A page has megabytes and is part of hundreds of concurrent requests. So the body refers to the encoding
    that each ``HashedText`` keeps, and is assembled when it is sent.

    Raises:
        TypeError: a parameter is no JSON value.
        ValueError: a number is infinite or NaN.
    """

    def __init__(
        self, parameters: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
    ) -> None:
        self._pieces = _joined(_body_pieces(parameters, messages))

    @property
    def size_bytes(self) -> int:
        """Return the length of the body."""
        return sum(
            piece.json_bytes if isinstance(piece, HashedText) else len(piece)
            for piece in self._pieces
        )

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces, made one at a time."""
        for piece in self._pieces:
            yield from piece.json_pieces if isinstance(piece, HashedText) else (piece,)

    def sha256(self) -> str:
        """Return the hex digest of the body, without assembling it in memory."""
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces())

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # In one piece, which takes the fewest writes and is freed once it is sent.
        yield bytes(self)


def _joined(pieces: Iterator[Piece]) -> list[Piece]:
    """Return the pieces with adjacent small ones joined."""
    joined: list[Piece] = []
    small: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, HashedText):
            joined += (b"".join(small), piece)
            small.clear()
        else:
            small.append(piece)
    return [*joined, b"".join(small)]


def _body_pieces(
    parameters: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
) -> Iterator[Piece]:
    yield _up_to_value(parameters, "messages")
    for number, message in enumerate(messages):
        yield b"," if number else b"["
        yield from _message_pieces(message)
    yield b"]}" if messages else b"[]}"


def _message_pieces(message: Mapping[str, Any]) -> Iterator[Piece]:
    content = message["content"]
    if isinstance(content, str):
        yield _compact(message)
        return
    yield _up_to_value(message, "content")
    yield b"["
    for number, part in enumerate(content):
        yield b"," if number else b""
        yield from _part_pieces(part)
    yield b"]}"


def _part_pieces(part: Mapping[str, Any]) -> Iterator[Piece]:
    text, image = part.get("text"), part.get("image_url")
    if isinstance(text, HashedText):
        yield _up_to_value(part, "text")
        yield text
        yield b"}"
    elif isinstance(image, Mapping) and isinstance(image["url"], HashedText):
        yield _up_to_value(part, "image_url")
        yield _up_to_value(image, "url")
        yield image["url"]
        yield b"}}"
    else:
        yield _compact(part)


def _up_to_value(fields: Mapping[str, Any], last: str) -> bytes:
    """Return the object with one field moved to its end, up to that field's value."""
    others = {name: value for name, value in fields.items() if name != last}
    return _compact({**others, last: 0})[: -len("0}")]


def _compact(value: object) -> bytes:
    return _ENCODER.encode(value).encode()


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    raise TypeError(f"a {type(value).__name__} is not JSON serializable")


# json.dumps would make one for every part of every message.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain
)
