"""Screenshots: conversion to JPEG, cutting into readable parts, and damaged or oversized files."""

import io
import struct
import subprocess
import sys
import zlib

import pytest
from PIL import Image, ImageFile

from mind2web2.errors import DocumentError
from mind2web2.utils.images import MAX_PIXELS, cut_screenshot, to_jpeg


def encoded(image, file_format="PNG", **options):
    """Return the image as a file's bytes."""
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


def banded(width_px, height_px, band_px=100):
    """Return a page whose grey tells at which height one looks."""
    page = Image.new("L", (1, height_px))
    page.putdata([(y // band_px) % 250 for y in range(height_px)])
    return page.resize((width_px, height_px)).convert("RGB")


def opened(jpeg):
    """Return the decoded JPEG."""
    image = Image.open(io.BytesIO(jpeg))
    assert image.format == "JPEG"
    image.load()
    return image


def png_header(width_px, height_px):
    """Return a PNG that promises a size and holds hardly any pixels."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width_px, height_px, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\0" * 99)),
    ]
    framed = [
        struct.pack(">I", len(c)) + n + c + struct.pack(">I", zlib.crc32(n + c)) for n, c in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def test_a_jpeg_is_left_as_it_is():
    """Converting a JPEG loses nothing."""
    jpeg = encoded(banded(300, 400), "JPEG", quality=40)
    assert to_jpeg(jpeg) is jpeg


@pytest.mark.parametrize("file_format", ["PNG", "WEBP", "GIF", "BMP"])
def test_other_formats_become_jpeg(file_format):
    assert opened(to_jpeg(encoded(banded(30, 40), file_format))).size == (30, 40)


@pytest.mark.parametrize(
    "image",
    [
        Image.new("RGBA", (20, 20), (0, 0, 0, 0)),
        Image.new("LA", (20, 20), (0, 0)),
        Image.new("RGBA", (20, 20), (0, 0, 0, 0)).convert("P"),
    ],
)
def test_see_through_areas_become_white(image):
    """Transparent black is paper, not ink."""
    assert opened(to_jpeg(encoded(image))).getpixel((9, 9)) == (255, 255, 255)


def test_sixteen_bit_greys_keep_their_tone():
    """A deep grey picture does not turn white."""
    grey, _, _ = opened(to_jpeg(encoded(Image.new("I;16", (20, 20), 20_000)))).getpixel((9, 9))
    assert abs(grey - 78) <= 2


@pytest.mark.parametrize(
    ("size", "whole", "shown", "count"),
    [
        ((1100, 900), (1100, 900), 900, 1),
        ((400, 1500), (400, 1500), 1500, 1),
        ((1100, 2000), (1100, 2000), 2000, 1),
        ((1100, 2001), (1100, 2001), 2001, 2),
        ((2200, 4000), (1100, 2000), 2000, 1),
        ((1100, 6000), (1100, 6000), 6000, 4),
        ((1100, 12_000), (1100, 12_000), 10_000, 6),
        ((1, 3), (1, 3), 3, 1),
        ((5000, 1), (1100, 1), 1, 1),
    ],
)
def test_parts_cover_the_shown_height(size, whole, shown, count):
    """Parts are as wide as the whole, no taller than asked, and overlap.

    Narrow pages are not enlarged.
    """
    cut = cut_screenshot(encoded(Image.new("RGB", size, "white")))
    sizes = [opened(part).size for part in cut.parts]
    assert (cut.width_px, cut.height_px) == whole
    assert (cut.shown_height_px, len(sizes)) == (shown, count)
    assert cut.is_cut is (shown < whole[1])
    assert all(width == whole[0] and height <= 2000 for width, height in sizes)
    assert sum(height for _, height in sizes) - 200 * (count - 1) == shown


@pytest.mark.parametrize(
    ("file_format", "width_px"),
    [("PNG", 1100), ("JPEG", 1100), ("JPEG", 2200), ("PNG", 1650)],
)
def test_a_part_begins_where_the_one_before_nearly_ends(file_format, width_px):
    """Parts overlap by 200 rows, at every scale and with each decoder."""
    scale = width_px / 1100
    page = banded(width_px, round(5000 * scale), round(100 * scale))
    parts = [opened(part) for part in cut_screenshot(encoded(page, file_format)).parts]
    ends = [part.height * index - 200 * index for index, part in enumerate(parts)]
    for part, top in zip(parts, ends, strict=True):
        greys = [part.getpixel((50, y))[0] for y in (10, 300, part.height - 10)]
        expected = [(top + y) // 100 for y in (10, 300, part.height - 10)]
        assert greys == pytest.approx(expected, abs=2)


@pytest.mark.parametrize(
    ("size", "limit_mb", "expected"),
    [
        ((1920, 30_000), 512, [b"6", b"17188", b"True"]),
        ((2400, 20_000), 160, [b"5", b"9167", b"False"]),
    ],
)
def test_a_very_tall_screenshot_needs_bounded_memory(size, limit_mb, expected):
    """Tall screenshots are cut in little memory; wide ones are decoded at half size."""
    program = f"""
import resource, sys
from mind2web2.utils.images import cut_screenshot
resource.setrlimit(resource.RLIMIT_DATA, ({limit_mb} * 1024**2, -1))
cut = cut_screenshot(sys.stdin.buffer.read())
print(len(cut.parts), cut.height_px, cut.is_cut)
"""
    command, screenshot = (
        [sys.executable, "-c", program],
        encoded(banded(*size), "JPEG"),
    )
    done = subprocess.run(command, input=screenshot, capture_output=True, check=False, timeout=120)
    assert done.stdout.split() == expected, done.stderr


@pytest.mark.parametrize("function", [to_jpeg, cut_screenshot])
@pytest.mark.parametrize("size", [(50_000, 50_000), (12_000, 12_000), (100, 200_000)])
def test_oversized_images_are_refused_unread(function, size):
    """The header alone decides, and the message says what is wrong."""
    with pytest.raises(DocumentError, match=r"not decoded"):
        function(png_header(*size))


def test_sizes_that_pillow_warns_about_are_fine():
    """An allowed size over Pillow's own threshold is read without a warning."""
    threshold = Image.MAX_IMAGE_PIXELS
    screenshot = encoded(Image.new("L", (1100, 85_000), 255), compress_level=1)
    assert threshold < 1100 * 85_000 < MAX_PIXELS
    assert cut_screenshot(screenshot).height_px == 85_000
    assert threshold == Image.MAX_IMAGE_PIXELS
    with pytest.raises(DocumentError, match="65500"):
        to_jpeg(screenshot)


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_truncated_images_are_refused(file_format, share):
    """Half a file is an error, never a picture with a grey rest."""
    whole = encoded(Image.effect_noise((300, 300), 90).convert("RGB"), file_format)
    with pytest.raises(DocumentError, match=r"damaged|not an image"):
        cut_screenshot(whole[: int(len(whole) * share)])
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"junk",
        b"<html>not found</html>",
        b"%PDF-1.7",
        b"\xff\xd8\xff\xe0",
        b"%!PS-Adobe",
    ],
)
@pytest.mark.parametrize("function", [to_jpeg, cut_screenshot])
def test_what_is_no_image_is_refused(function, junk):
    """Error pages and other files are not taken for screenshots."""
    with pytest.raises(DocumentError):
        function(junk)


def test_limits_that_make_no_sense_are_refused():
    """An overlap as tall as a part would never get to the end."""
    with pytest.raises(ValueError, match="overlap"):
        cut_screenshot(encoded(banded(10, 10)), part_height_px=100, overlap_px=100)
