"""Screenshots for vision models: valid JPEGs, in parts of full resolution.

Models shrink what is larger than their tiles, until the letters of a tall screenshot are gone. The
functions here take processor time; callers run them through ``workers.run_in_worker``.
"""

from __future__ import annotations

import io
import math
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind2web2.errors import DocumentError

if TYPE_CHECKING:
    from PIL import Image

# Pillow keeps four bytes a pixel, at times in two copies: half of a worker's memory limit.
MAX_PIXELS = 120_000_000
MAX_SIDE_PX = 100_000
# The limit of libjpeg.
MAX_JPEG_SIDE_PX = 65_500

# Browsers take and show these; Pillow's further formats have run other programs on hostile input.
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
_JPEG_START = b"\xff\xd8\xff"
# Errors of Pillow for damaged files; its PNG reader raises SyntaxError.
_DAMAGE = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    OverflowError,
    struct.error,
    zlib.error,
)


@dataclass(frozen=True, slots=True)
class ScreenshotParts:
    """A screenshot cut from top to bottom.

    Args:
        parts: JPEGs, each repeating the end of the one before.
        width_px: width of the whole after scaling, which is each part's too.
        height_px: height of the whole after scaling.
        shown_height_px: how much of the height the parts cover, from the top.
    """

    parts: tuple[bytes, ...]
    width_px: int
    height_px: int
    shown_height_px: int

    @property
    def is_cut(self) -> bool:
        """Tells whether the whole goes on below the last part."""
        return self.shown_height_px < self.height_px


def to_jpeg(data: bytes, quality: int = 85) -> bytes:
    """Return an image file as JPEG: a JPEG as it is, others converted, see-through areas white.

    A JPEG is not decoded, so damage behind its header shows only when ``cut_screenshot`` reads it.

    Raises:
        DocumentError: damaged, too large, or not an image.
    """
    with _open_image(data) as image:
        if data.startswith(_JPEG_START):
            return data
        if max(image.size) > MAX_JPEG_SIDE_PX:
            raise DocumentError(
                f"image of {_size(image)} cannot be a JPEG: a side has {MAX_JPEG_SIDE_PX} px at "
                "most"
            )
        return encode_jpeg(_flatten(image), quality)


def cut_screenshot(
    image: bytes,
    *,
    max_width_px: int = 1100,
    max_height_px: int = 10_000,
    part_height_px: int = 2000,
    overlap_px: int = 200,
    jpeg_quality: int = 85,
) -> ScreenshotParts:
    """Scale a screenshot down to a readable width, and cut it into overlapping parts.

    Raises:
        DocumentError: damaged, too large, or not an image.
    """
    if not (max_width_px > 0 and max_height_px > 0 and part_height_px > overlap_px >= 0):
        raise ValueError("limits must be above 0 and the overlap less than a part's height")
    with _open_image(image) as screenshot:
        whole_width, whole_height = screenshot.size
        scale = min(1.0, max_width_px / whole_width)
        width_px, height_px = (
            max(1, round(whole_width * scale)),
            max(1, round(whole_height * scale)),
        )
        # Makes the JPEG decoder itself shrink by 2, 4 or 8 where that still leaves enough.
        screenshot.draft(None, (width_px, height_px))
        shown_px = min(height_px, max_height_px)
        strips = _strips(shown_px, part_height_px, overlap_px)
        parts = (
            _scaled_strip(screenshot, top, bottom, (width_px, height_px)) for top, bottom in strips
        )
        encoded = tuple(encode_jpeg(part, jpeg_quality) for part in parts)
    return ScreenshotParts(encoded, width_px, height_px, shown_px)


def size_px(start: bytes) -> tuple[int, int]:
    """Return an image's width and height by its first bytes, which need not be the whole file.

    Raises:
        DocumentError: it is not an image, or too large to be decoded.
    """
    with _open_image(start) as image:
        return image.size


def encode_jpeg(image: Image.Image, quality: int) -> bytes:
    """Return an RGB picture as a JPEG file."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


@contextmanager
def _open_image(data: bytes) -> Iterator[Image.Image]:
    """Open an image of acceptable size by its header, and translate the errors of reading it."""
    from PIL import Image, UnidentifiedImageError

    with warnings.catch_warnings():
        # Pillow warns about sizes that are allowed here; ours are checked below.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                _check_size(image)
                yield image
        except Image.DecompressionBombError as error:
            raise DocumentError(
                f"image has more than {MAX_PIXELS} pixels: it is not decoded"
            ) from error
        except UnidentifiedImageError as error:
            raise DocumentError("not an image, or its header is damaged") from error
        except _DAMAGE as error:
            raise DocumentError(f"image is damaged or cut short ({error})") from error


def _check_size(image: Image.Image) -> None:
    width_px, height_px = image.size
    if width_px * height_px > MAX_PIXELS:
        raise DocumentError(
            f"image of {_size(image)} has more than {MAX_PIXELS} pixels: it is not decoded"
        )
    if max(image.size) > MAX_SIDE_PX:
        raise DocumentError(
            f"image of {_size(image)} has a side over {MAX_SIDE_PX} px: it is not decoded"
        )
    if min(image.size) < 1:
        raise DocumentError(f"image of {_size(image)} is empty")


def _size(image: Image.Image) -> str:
    return f"{image.width} x {image.height} px"


def _strips(shown_px: int, part_px: int, overlap_px: int) -> Iterator[tuple[int, int]]:
    """Yield the top and bottom of parts of equal height, so that no part is a mere sliver."""
    count = max(1, math.ceil((shown_px - overlap_px) / (part_px - overlap_px)))
    step = (shown_px - overlap_px) / count
    for index in range(count):
        top = round(index * step) if index else 0
        yield top, min(shown_px, round((index + 1) * step) + overlap_px)


def _scaled_strip(
    image: Image.Image, top_px: int, bottom_px: int, whole: tuple[int, int]
) -> Image.Image:
    """Return the rows from ``top_px`` to ``bottom_px`` of the image, scaled to ``whole``."""
    from PIL import Image

    width_px, height_px = whole
    rows = image.height / height_px
    top, bottom = top_px * rows, min(image.height, bottom_px * rows)
    first, last = math.floor(top), math.ceil(bottom)
    strip = _flatten(image.crop((0, first, image.width, last)))
    box = (0, top - first, image.width, bottom - first)
    return strip.resize((width_px, bottom_px - top_px), Image.Resampling.LANCZOS, box=box)


def _flatten(image: Image.Image) -> Image.Image:
    """Return the picture in RGB, on white where it is see-through."""
    from PIL import Image

    if image.mode.startswith("I;16"):
        # Pillow would clip 16-bit greys, which leaves a nearly white page.
        image = image.point(lambda grey: grey / 256).convert("L")
    if not image.has_transparency_data:
        return image.convert("RGB")
    layer = image.convert("RGBA")
    page = Image.new("RGB", image.size, "white")
    page.paste(layer, mask=layer)
    return page
