"""Small functions that eval scripts import, for prompts, links, images and file names."""

from __future__ import annotations

import base64
import os.path
import re
import textwrap
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.urls.parts import undo_markdown_escapes
from mind2web2.utils.api_misuse import checked_call
from mind2web2.utils.images import to_jpeg

if TYPE_CHECKING:
    from PIL.Image import Image

_WHOLE_LINK = re.compile(r"!?\[(?:[^\]\\]|\\.)*\]\((.*)\)", re.DOTALL)
_ANGLE_BRACKETS = re.compile(r"<([^<>\n]*)>")
_TITLE = re.compile(r"""(?<!\s)\s++(?:"[^"]*"|'[^']*'|\([^()]*\))$""")


@checked_call
def text_dedent(multi_line_str: str) -> str:
    """Return the text without its lines' common indentation and without blank lines around it."""
    return textwrap.dedent(multi_line_str).strip("\n").rstrip()


@checked_call
def normalize_url_markdown(url: str) -> str:
    r"""Return the plain URL of a markdown link target: no ``<>``, no title, no ``\_`` escapes."""
    target = url.strip()
    if link := _WHOLE_LINK.fullmatch(target):
        target = link[1].strip()
    target = _TITLE.sub("", target)
    if angled := _ANGLE_BRACKETS.fullmatch(target):
        target = angled[1].strip()
    return undo_markdown_escapes(target).replace("&amp;", "&")


@checked_call
def encode_image(image_path: str | Path) -> str:
    """Return an image file's bytes as base64 text."""
    return base64.b64encode(Path(image_path).read_bytes()).decode()


@checked_call
def encode_image_buffer(buffer: bytes | BytesIO | Image) -> str:
    """Return an image as base64 text: encoded bytes as they are, a Pillow image as JPEG."""
    return base64.b64encode(_image_bytes(buffer)).decode()


@checked_call
def strip_extension(filename: str) -> str:
    """Return a file name or path without its last extension."""
    return os.path.splitext(filename)[0]  # noqa: PTH122 - a name is text here, kept to the letter


def _image_bytes(image: bytes | BytesIO | Image) -> bytes:
    if isinstance(image, bytes):
        return image
    if isinstance(image, BytesIO):
        return image.getvalue()
    lossless = BytesIO()
    image.save(lossless, format="PNG")
    return to_jpeg(lossless.getvalue())
