"""How many tokens a request has, about, before the judge has counted them."""

from __future__ import annotations

from collections.abc import Iterator

from mind2web2.llm_client.chat import ChatRequest, MessagePart
from mind2web2.llm_client.messages import image_size_px
from mind2web2.llm_client.prices import image_tokens

# English text; other scripts have fewer characters a token, but more bytes a character.
BYTES_A_TOKEN = 4
# Tokens of a request beside its texts: roles, and the schema of the reply.
_OVERHEAD_TOKENS = 150
# A part of a screenshot (PageSettings), for an image of unknown size.
PART_SIZE_PX = (1100, 2000)
# Tokens of a usual reply, for estimates.
REPLY_TOKENS = 400


def text_tokens(text: str) -> int:
    """Return the approximate number of tokens in a text."""
    if text.isascii():
        size_bytes = len(text)
    else:
        size_bytes = len(text.encode("utf-8", "replace"))
    return -(-size_bytes // BYTES_A_TOKEN)


def request_tokens(request: ChatRequest) -> int:
    """Return the approximate number of tokens in a request, images by the rule of its model."""
    tokens = _OVERHEAD_TOKENS
    for part in _parts(request):
        if part.get("type") == "image_url":
            size_px = image_size_px(part["image_url"]["url"]) or PART_SIZE_PX
            tokens += image_tokens(request.model, *size_px)
        else:
            tokens += text_tokens(str(part.get("text", "")))
    return tokens


def _parts(request: ChatRequest) -> Iterator[MessagePart]:
    for message in request.messages:
        content = message.get("content")
        if isinstance(content, str):
            yield {"type": "text", "text": content}
        else:
            yield from content or ()
