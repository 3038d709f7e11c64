"""Chat messages, and the images in them.

Messages are checked before they are sent, and changed for what a server takes.
"""

from __future__ import annotations

import base64
import binascii
import itertools
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from mind2web2.errors import DocumentError
from mind2web2.llm_client.chat import (
    CheckedMessage,
    ImagePart,
    Message,
    Role,
    TextPart,
)
from mind2web2.utils.images import size_px

_MESSAGES = TypeAdapter(Annotated[list[CheckedMessage], Field(min_length=1)])
# The header with an image's size, usually and with long metadata before it.
_HEADER_CHARS = (4096, 64 * 1024)


def checked_messages(messages: Sequence[Message]) -> list[CheckedMessage]:
    """Return the messages in a form that can be sent.

    Raises:
        ValueError: a message has another structure than in eval-scripts.md.
    """
    try:
        return _MESSAGES.validate_python(messages)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, ("messages", *first["loc"])))
        raise ValueError(f"{where}: {first['msg']}") from error


def with_text_at_end(messages: Sequence[CheckedMessage], text: str) -> list[CheckedMessage]:
    """Return the messages with a text added to the user's last turn."""
    *earlier, last = messages
    if last["role"] != "user":
        return [*messages, {"role": "user", "content": text}]
    content = last["content"]
    if isinstance(content, str):
        return [*earlier, {**last, "content": f"{content}\n\n{text}"}]
    added: TextPart = {"type": "text", "text": text}
    return [*earlier, {**last, "content": [*content, added]}]


def with_content_as_text(messages: Sequence[CheckedMessage]) -> list[CheckedMessage]:
    """Return the messages with a string as their content, apart from those with images."""
    changed: list[CheckedMessage] = []
    for message in messages:
        texts = list(text_of([message]))
        has_images = len(texts) < len(parts_of(message["content"]))
        changed.append(message if has_images else {**message, "content": "\n".join(texts)})
    return changed


def in_turns(messages: Sequence[CheckedMessage]) -> list[CheckedMessage]:
    """Return the messages with the user and the assistant in turn, and no system."""
    turns: list[CheckedMessage] = []
    for message in messages:
        role: Role = "assistant" if message["role"] == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            parts = [*parts_of(turns.pop()["content"]), *parts_of(message["content"])]
            turns.append({"role": role, "content": parts})
        else:
            turns.append({**message, "role": role})
    return turns


def parts_of(content: str | list[TextPart | ImagePart]) -> list[TextPart | ImagePart]:
    """Return a message's content as a list of its parts."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def text_of(messages: Sequence[CheckedMessage]) -> Iterator[str]:
    """Yield all texts."""
    for message in messages:
        for part in parts_of(message["content"]):
            if part["type"] == "text":
                yield part["text"]


def with_fewer_images(messages: Sequence[Message], count: int) -> list[Message]:
    """Return the messages with the first images only, and a note in place of each other image."""
    number = itertools.count(1)

    def shown(part: Any) -> Any:
        if part.get("type") != "image_url" or next(number) <= count:
            return part
        return {"type": "text", "text": "[An image is left out here.]"}

    return [
        message
        if isinstance(message.get("content"), str)
        else {**message, "content": list(map(shown, message.get("content") or ()))}
        for message in messages
    ]


def image_urls(messages: Sequence[Message]) -> list[str]:
    """Return the addresses of all images, in their order."""
    return [
        part["image_url"]["url"]
        for message in messages
        if not isinstance(message.get("content"), str)
        for part in message.get("content") or ()
        if part.get("type") == "image_url"
    ]


def image_size_px(url: str) -> tuple[int, int] | None:
    """Return width and height of an image that is given as data.

    The size is ``None`` for another image or a damaged one.
    """
    head, _, data = url[: _HEADER_CHARS[-1]].partition(";base64,")
    for length in _HEADER_CHARS if head.startswith("data:") else ():
        try:
            return size_px(base64.b64decode(data[: min(length, len(data)) // 4 * 4]))
        except (DocumentError, binascii.Error):
            continue
    return None
