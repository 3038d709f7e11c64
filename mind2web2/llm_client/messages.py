"""Chat messages: checked before they are sent, and changed for what a server takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mind2web2.llm_client.chat import Message
from mind2web2.prompts import HashedText

_ROLES = ("system", "developer", "user", "assistant")
_IMAGE_SCHEMES = ("data:image/", "https://", "http://")


def checked_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages in a form that can be sent.

    Raises:
        ValueError: a message has another structure than in eval-scripts.md.
    """
    if (
        isinstance(messages, str | Mapping)
        or not isinstance(messages, Sequence)
        or not messages
    ):
        raise ValueError(
            "messages must be a non-empty list of {'role', 'content'} objects"
        )
    return [
        _checked_message(message, f"messages[{index}]")
        for index, message in enumerate(messages)
    ]


def with_text_at_end(
    messages: Sequence[Mapping[str, Any]], text: str
) -> list[dict[str, Any]]:
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


def _checked_message(message: object, where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise ValueError(
            f"{where} must be a {{'role', 'content'}} object, not {type(message).__name__}"
        )
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        raise ValueError(
            f"{where} has role {role!r}, expected one of {', '.join(_ROLES)}"
        )
    if isinstance(content, str):
        return {**message, "content": sendable_text(content)}
    if not isinstance(content, Sequence) or not content:
        raise ValueError(
            f"{where}['content'] must be a text or a non-empty list of parts"
        )
    parts = [
        _checked_part(part, f"{where}['content'][{index}]")
        for index, part in enumerate(content)
    ]
    return {**message, "content": parts}


def _checked_part(part: object, where: str) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if (
        isinstance(part, Mapping)
        and kind == "text"
        and isinstance(part.get("text"), str)
    ):
        return {**part, "text": sendable_text(part["text"])}
    if isinstance(part, Mapping) and kind == "image_url":
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, Mapping) else None
        if isinstance(url, str) and url.startswith(_IMAGE_SCHEMES):
            return dict(part)
        raise ValueError(
            f"{where} must hold {{'image_url': {{'url': 'data:image/...' or 'https://...'}}}}"
        )
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
