"""Cited files that are no web pages: a PDF as it is, an image as the screenshot, text as the text."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

from mind2web2.capture.documents import FetchedDocument
from mind2web2.capture.failures import PageFailureError
from mind2web2.errors import DocumentError
from mind2web2.utils.images import to_jpeg
from mind2web2.utils.workers import run_in_worker

_IMAGE_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class FileContent:
    """What is stored of a file: a PDF, or text with an image.

    Args:
        notes: what was left out.
    """

    text: str | None = None
    image: bytes | None = None
    pdf: bytes | None = None
    notes: tuple[str, ...] = ()


async def read_file_content(file: FetchedDocument, max_text_chars: int, jpeg_quality: int) -> FileContent:
    """Return what a judge can be shown of a file.

    Raises:
        PageFailureError: nothing, because of its type, its size or its damage.
    """
    kind = file.kind()
    if not file.body:
        raise PageFailureError("the server sent an empty file", "empty_page")
    if kind == "text":
        text = await asyncio.to_thread(file.text)
        cut = file.is_cut or len(text) > max_text_chars
        notes = (f"text cut after {min(len(text), max_text_chars)} characters",) if cut else ()
        return FileContent(text=text[:max_text_chars], notes=notes)
    if file.is_cut:
        raise PageFailureError(f"the file is larger than {len(file.body)} bytes", "unsupported_type")
    if kind == "pdf":
        return FileContent(pdf=file.body)
    if kind == "image":
        return await _image(file, jpeg_quality)
    raise PageFailureError(
        f"files of type {file.media_type or 'unknown'} are not supported", "unsupported_type"
    )


async def _image(file: FetchedDocument, jpeg_quality: int) -> FileContent:
    try:
        # In a process of its own: decoding takes memory as the image pleases.
        jpeg = await run_in_worker(
            partial(to_jpeg, quality=jpeg_quality), file.body, timeout_s=_IMAGE_TIMEOUT_S
        )
    except DocumentError as error:
        raise PageFailureError(f"the image cannot be read: {error}", "unsupported_type") from error
    name = file.url.partition("?")[0].rpartition("/")[2]
    return FileContent(text=f"[image: {file.file_name or name}]", image=jpeg)
