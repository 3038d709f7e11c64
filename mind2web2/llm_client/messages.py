"""Chat messages: checked, adapted to the judge, and encoded as the body of a request."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from mind2web2.errors import DocumentError
from mind2web2.llm_client.chat import Message
from mind2web2.prompts import HashedText
from mind2web2.utils.images import size_px

Piece = bytes | HashedText

_ROLES = ("system", "developer", "user", "assistant")
_IMAGE_SCHEMES = ("data:image/", "https://", "http://")
# The header with an image's size, usually and with long metadata before it.
_HEADER_CHARS = (4096, 64 * 1024)


def checked_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages in a form that can be sent.

    Raises:
        ValueError: a message has another structure than in eval-scripts.md.
    """
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence) or not messages:
        raise ValueError("messages must be a non-empty list of {'role', 'content'} objects")
    return [_checked_message(message, f"messages[{index}]") for index, message in enumerate(messages)]


def with_text_at_end(messages: Sequence[Mapping[str, Any]], text: str) -> list[dict[str, Any]]:
    """Return the messages with a text added to the user's last turn."""
    *earlier, last = ({**message} for message in messages)
    if last["role"] != "user":
        return [*earlier, last, {"role": "user", "content": text}]
    content = last["content"]
    if isinstance(content, str):
        last["content"] = f"{content}\n\n{text}"
    else:
        last["content"] = [*content, {"type": "text", "text": text}]
    return [*earlier, last]


def with_content_as_text(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with a string as their content, apart from those with images."""
    return [
        {**message, "content": "\n".join(part["text"] for part in message["content"])}
        if not isinstance(message["content"], str)
        and all(part["type"] == "text" for part in message["content"])
        else dict(message)
        for message in messages
    ]


def with_fewer_images(messages: Sequence[Message], count: int) -> list[Message]:
    """Return the messages with the first images only, and a note in place of each other image."""
    left = count
    fewer: list[Message] = []
    for message in messages:
        content = message.get("content")
        parts: list[Any] = []
        for part in () if isinstance(content, str) else content or ():
            is_image = part.get("type") == "image_url"
            is_left_out = is_image and left <= 0
            left -= is_image
            parts.append({"type": "text", "text": "[An image is left out here.]"} if is_left_out else part)
        fewer.append({**message, "content": content if isinstance(content, str) else parts})
    return fewer


def image_urls(messages: Sequence[Message]) -> list[str]:
    """Return the addresses of all images, in their order."""
    return [
        part["image_url"]["url"]
        for message in messages
        if not isinstance(message.get("content"), str)
        for part in message.get("content") or ()
        if part.get("type") == "image_url"
    ]


def longest_side_px(images: Sequence[str]) -> int:
    """Return the longest side of the images that are given as data, 0 where none is."""
    return max((max(image_size_px(url) or (0, 0)) for url in images), default=0)


def image_size_px(url: str) -> tuple[int, int] | None:
    """Return width and height of an image that is given as data, ``None`` for another or a damaged one."""
    head, _, data = url[: _HEADER_CHARS[-1]].partition(";base64,")
    for length in _HEADER_CHARS if head.startswith("data:") else ():
        try:
            return size_px(base64.b64decode(data[: min(length, len(data)) // 4 * 4]))
        except (DocumentError, binascii.Error):
            continue
    return None


def _checked_message(message: object, where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise ValueError(f"{where} must be a {{'role', 'content'}} object, not {type(message).__name__}")
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        raise ValueError(f"{where} has role {role!r}, expected one of {', '.join(_ROLES)}")
    if isinstance(content, str):
        return {**message, "content": sendable_text(content)}
    if not isinstance(content, Sequence) or not content:
        raise ValueError(f"{where}['content'] must be a text or a non-empty list of parts")
    parts = [_checked_part(part, f"{where}['content'][{index}]") for index, part in enumerate(content)]
    return {**message, "content": parts}


def _checked_part(part: object, where: str) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if isinstance(part, Mapping) and kind == "text" and isinstance(part.get("text"), str):
        return {**part, "text": sendable_text(part["text"])}
    if isinstance(part, Mapping) and kind == "image_url":
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, Mapping) else None
        if isinstance(url, str) and url.startswith(_IMAGE_SCHEMES):
            return dict(part)
        raise ValueError(f"{where} must hold {{'image_url': {{'url': 'data:image/...' or 'https://...'}}}}")
    raise ValueError(
        f"{where} must be a {{'type': 'text', 'text': ...}} or {{'type': 'image_url', ...}} part"
    )


def sendable_text(text: str) -> str:
    """Return the text with lone surrogates, which no request can carry, replaced by U+FFFD."""
    if isinstance(text, HashedText) and text.is_sendable:
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class JsonBody:
    """The JSON body of a request, on one line.

    A page has megabytes and is part of hundreds of concurrent requests. So the body refers to the encoding
    that each ``HashedText`` keeps, and is assembled when it is sent.

    Raises:
        TypeError: a parameter is no JSON value.
        ValueError: a number is infinite or NaN.
    """

    def __init__(self, parameters: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> None:
        self._pieces = _joined(_body_pieces(parameters, messages))

    @property
    def size_bytes(self) -> int:
        """Return the length of the body."""
        return sum(
            piece.json_bytes if isinstance(piece, HashedText) else len(piece) for piece in self._pieces
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


def _body_pieces(parameters: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> Iterator[Piece]:
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
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)
