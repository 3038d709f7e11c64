"""Chat messages in the form that Claude takes: system texts apart, images as base64 blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mind2web2.errors import JudgeRequestError

Block = dict[str, Any]

_DATA_URL = re.compile(r"data:(image/[\w.+-]+);base64,")

# Seen in the wild, but no registered type: Claude takes only the registered one.
_MEDIA_TYPE_ALIASES = {"image/jpg": "image/jpeg"}


def claude_messages(
    messages: Sequence[Mapping[str, Any]], *, marks_cache: bool
) -> tuple[list[Block], list[Block]]:
    """Return the system blocks and the turns.

    Args:
        messages: checked messages.
        marks_cache: mark the end of what later requests share: all of the user's first turn but its
            last part, since prompts end with what differs.
    """
    system: list[Block] = []
    turns: list[Block] = []
    for message in messages:
        blocks = _blocks(message["content"])
        if message["role"] in ("system", "developer"):
            system += blocks
        else:
            turns.append({"role": message["role"], "content": blocks})
    if marks_cache and turns and len(turns[0]["content"]) > 1:
        turns[0]["content"][-2]["cache_control"] = {"type": "ephemeral"}
    return system, turns


def _blocks(content: str | Sequence[Mapping[str, Any]]) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    # empty texts are refused
    return [_block(part) for part in content if part.get("text") != ""]


def _block(part: Mapping[str, Any]) -> Block:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    url = part["image_url"]["url"]
    found = _DATA_URL.match(url)
    if found is None:
        raise JudgeRequestError(f"bedrock takes images as base64 data URLs only, not {url[:60]}")
    media_type = found.group(1).lower()
    source = {
        "type": "base64",
        "media_type": _MEDIA_TYPE_ALIASES.get(media_type, media_type),
        "data": url[found.end() :],
    }
    return {"type": "image", "source": source}
