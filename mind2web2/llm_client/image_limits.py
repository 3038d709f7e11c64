"""How many images a judge takes, and how large: limits, and messages within them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from mind2web2.errors import DocumentError, ImagesRefusedError
from mind2web2.llm_client.chat import Message
from mind2web2.utils.images import size_px


class ImageLimit(BaseModel):
    """Most images in one question, and the longest side of an image; ``None`` for any."""

    model_config = ConfigDict(frozen=True)

    max_images: int | None = None
    max_side_px: int | None = None

    @classmethod
    def of(cls, refusal: ImagesRefusedError) -> Self:
        """Return the limit that a refusal names."""
        return cls(max_images=refusal.max_images, max_side_px=refusal.max_side_px)

    def refusal(self, reason: str) -> ImagesRefusedError:
        """Return the error that names this limit."""
        return ImagesRefusedError(reason, self.max_images, self.max_side_px)

    def merged(self, other: ImageLimit) -> ImageLimit:
        """Return the limit that respects both."""
        return ImageLimit(
            max_images=_least(self.max_images, other.max_images),
            max_side_px=_least(self.max_side_px, other.max_side_px),
        )

    def in_words(self) -> str:
        """Return a description such as ``at most 3 images``."""
        side = (
            ""
            if self.max_side_px is None
            else f" of at most {self.max_side_px} pixels a side"
        )
        if self.max_images is None:
            return f"images{side}"
        if self.max_images == 0:
            return "no images"
        return f"at most {self.max_images} image{'s' * (self.max_images != 1)}{side}"


NO_LIMIT = ImageLimit()


def _least(one: int | None, other: int | None) -> int | None:
    known = [number for number in (one, other) if number is not None]
    return min(known, default=None)


# The header with an image's size, usually and with long metadata before it.
_HEADER_CHARS = (4096, 64 * 1024)


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
            parts.append(
                {"type": "text", "text": "[An image is left out here.]"}
                if is_left_out
                else part
            )
        fewer.append(
            {**message, "content": content if isinstance(content, str) else parts}
        )
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
