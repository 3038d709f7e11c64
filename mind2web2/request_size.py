"""How large a judge request is, told before it is sent."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from mind2web2.errors import DocumentError
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.image_tokens import image_tokens
from mind2web2.utils.images import size_px

# English text; other scripts have fewer characters a token, but more bytes a character.
BYTES_A_TOKEN = 4
# What a request has beside its texts: roles, and the form that the reply must fill.
_OVERHEAD_TOKENS = 150
# A part of a screenshot (PageSettings), for an image whose size cannot be told.
PART_SIZE_PX = (1100, 2000)
# Of the base64 text; the header of a JPEG as Pillow writes it takes a sixth of that.
_HEADER_CHARS = 4096


def text_tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    size_bytes = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size_bytes // BYTES_A_TOKEN)


def request_tokens(request: ChatRequest) -> int:
    """Return about how many tokens a request has, images by the rule of its model."""
    tokens = _OVERHEAD_TOKENS
    for part in _parts(request):
        if part.get("type") == "image_url":
            tokens += image_tokens(request.model, *_image_size_px(part))
        else:
            tokens += text_tokens(str(part.get("text", "")))
    return tokens


def _parts(request: ChatRequest) -> Iterator[Mapping[str, Any]]:
    for message in request.messages:
        content = message.get("content")
        if isinstance(content, str):
            yield {"type": "text", "text": content}
        else:
            yield from content or ()


def _image_size_px(part: Mapping[str, Any]) -> tuple[int, int]:
    image = part.get("image_url")
    url = str(image.get("url", "") if isinstance(image, Mapping) else image)
    header, _, payload = url.partition(",") if url.startswith("data:") else ("", "", "")
    return _header_size_px(payload[:_HEADER_CHARS]) if header.endswith(";base64") else PART_SIZE_PX


@lru_cache(maxsize=256)
def _header_size_px(header: str) -> tuple[int, int]:
    try:
        return size_px(base64.b64decode(header))
    except (DocumentError, binascii.Error):
        return PART_SIZE_PX
