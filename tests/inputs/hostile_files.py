"""Small hostile files that unfold to a lot: images, PDFs and texts."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

from fixtures.pdf_files import pdf_of
from PIL import Image

_MB = 1024**2


def png(
    width_px: int,
    height_px: int,
    bits: int = 1,
    colour_type: int = 0,
    more: bytes = b"",
) -> bytes:
    """Return a black PNG of any size, written row by row; ``more`` are further chunks."""
    samples = {0: 1, 2: 3, 6: 4}[colour_type]
    row = b"\0" * ((width_px * bits * samples + 7) // 8 + 1)
    packer = zlib.compressobj(9)
    pixels = b"".join(packer.compress(row) for _ in range(height_px)) + packer.flush()
    header = struct.pack(">IIBBBBB", width_px, height_px, bits, colour_type, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + more
        + chunk(b"IDAT", pixels)
        + chunk(b"IEND", b"")
    )


def chunk(name: bytes, content: bytes) -> bytes:
    """Return a chunk of a PNG."""
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


def small_image(file_format: str, frames: int = 1) -> bytes:
    """Return an image file of 20 x 20 pixels with so many frames."""
    buffer = io.BytesIO()
    first, *others = [Image.new("RGB", (20, 20), (number % 256, 9, 9)) for number in range(frames)]
    options = {"save_all": True, "append_images": others} if others else {}
    first.save(buffer, file_format, **options)
    return buffer.getvalue()


def gif_of_any_size(width_px: int, height_px: int) -> bytes:
    """Return a GIF of a few bytes whose frame claims a size."""
    size = struct.pack("<HH", width_px, height_px)
    frame = b"," + struct.pack("<HH", 0, 0) + size + b"\0\x02\x02\x44\x01\0"
    return b"GIF89a" + size + b"\x80\0\0" + b"\0" * 6 + frame + b";"


IMAGE_BOMBS: dict[str, Callable[[], bytes]] = {
    "50,000 x 50,000 PNG": lambda: png(50_000, 50_000),
    "65,535 x 65,535 GIF": lambda: gif_of_any_size(65_535, 65_535),
    "PNG with 200 MB of text": lambda: png(9, 9, more=chunk(b"zTXt", b"a\0\0" + _packed(200))),
    "PNG with a 200 MB colour profile": lambda: png(
        9, 9, more=chunk(b"iCCP", b"a\0\0" + _packed(200))
    ),
    "GIF with 2,000 frames": lambda: small_image("GIF", 2000),
    "WebP with 300 frames": lambda: small_image("WEBP", 300),
    "PNG with 500 frames": lambda: small_image("PNG", 500),
}


def pdf_page(
    content: bytes, box: bytes = b"0 0 612 792", resources: bytes = b"", *more: bytes
) -> bytes:
    """Return a PDF of one page, whose content is a stream object.

    ``more`` are objects from number 6 on.
    """
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [%s] /Contents 4 0 R /Resources << %s >> >>"
    pages = b"<< /Type /Pages /Count 1 /Kids [5 0 R] >>"
    return pdf_of([_ROOT, pages, b"null", content, page % (box, resources), *more])


def stream(content: bytes, keys: bytes = b"") -> bytes:
    """Return a stream object."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), keys, content)


def _packed(megabytes: int, letter: bytes = b" ") -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(letter * _MB) for _ in range(megabytes)) + packer.flush()


def _forms(count: int) -> list[bytes]:
    """Return forms of which each shows the next one twice."""
    keys = (
        b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X %d 0 R >> >>"
    )
    shown = [stream(b"/X Do /X Do", keys % (7 + number)) for number in range(count)]
    return [
        *shown,
        stream(b"0 0 9 9 re f", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9]"),
    ]


_ROOT = b"<< /Type /Catalog /Pages 2 0 R >>"
_FLATE = b"/Filter /FlateDecode"

PDF_BOMBS: dict[str, Callable[[], bytes]] = {
    "page of 350,000 km": lambda: pdf_page(stream(b"0 0 9 9 re f"), b"0 0 1e12 1e12"),
    "page of no size": lambda: pdf_page(stream(b""), b"0 0 0 0"),
    "100,000 pages": lambda: pdf_of(
        [
            _ROOT,
            b"<< /Type /Pages /Count 100000 /Kids [%s] >>" % (b"3 0 R " * 100_000),
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>",
        ]
    ),
    "2,000,000,000 pages claimed": lambda: pdf_of(
        [
            _ROOT,
            b"<< /Type /Pages /Count 2000000000 /Kids [3 0 R] >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>",
        ]
    ),
    "tree of pages 50,000 deep": lambda: pdf_of(
        [
            _ROOT,
            *(
                b"<< /Type /Pages /Count 1 /Kids [%d 0 R] >>" % (number + 1)
                for number in range(2, 50_002)
            ),
            b"<< /Type /Page /Parent 50001 0 R /MediaBox [0 0 9 9] >>",
        ]
    ),
    "tree of pages in a circle": lambda: pdf_of(
        [_ROOT, b"<< /Type /Pages /Count 9 /Kids [2 0 R 2 0 R] >>"]
    ),
    "content packed three times": lambda: pdf_page(
        stream(
            zlib.compress(zlib.compress(_packed(200))),
            b"/Filter [/FlateDecode /FlateDecode /FlateDecode]",
        )
    ),
    "picture of 900 megapixels": lambda: pdf_page(
        stream(b"q 600 0 0 700 0 0 cm /I Do Q"),
        b"0 0 612 792",
        b"/XObject << /I 6 0 R >>",
        stream(
            _packed(100, b"\0"),
            b"/Type /XObject /Subtype /Image /Width 30000 /Height 30000 /ColorSpace /DeviceGray "
            b"/BitsPerComponent 8 " + _FLATE,
        ),
    ),
    "forms that double 40 times": lambda: pdf_page(
        stream(b"/X Do"), b"0 0 9 9", b"/XObject << /X 6 0 R >>", *_forms(40)
    ),
    "a pattern of tiny tiles": lambda: pdf_page(
        stream(b"/Pattern cs /P scn 0 0 600 700 re f"),
        b"0 0 612 792",
        b"/Pattern << /P 6 0 R >>",
        stream(
            b"0 0 1 1 re f",
            b"/Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 1 1] "
            b"/XStep 0.0001 /YStep 0.0001",
        ),
    ),
    "arrays 200,000 deep": lambda: pdf_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R /X " + b"[" * 200_000 + b"]" * 200_000 + b" >>",
            b"<< >>",
        ]
    ),
    "2,000,000,000 references claimed": lambda: (
        b"%PDF-1.7\nxref\n0 2000000000\ntrailer\n<< /Size 2000000000 /Root 1 0 R "
        b">>\nstartxref\n9\n%%EOF"
    ),
}


def repeated(text: str, chars: int) -> str:
    """Return a text of so many characters that says one thing again and again."""
    return (text * (chars // len(text) + 1))[:chars]


# These pieces take markdown parsers and patterns time that grows with the square, or worse.
HOSTILE_PIECES = (
    "[",
    "![",
    "[a](",
    "[a](http://a.com/(",
    "](",
    "<",
    "<a href='",
    "<http://a.com ",
    "<!--",
    "<![CDATA[",
    "<?",
    "- ",
    "> ",
    "1. ",
    "> - ",
    "  - a\n",
    "~~~\n",
    "`",
    "**",
    "*a **b ",
    "_a __",
    "|a",
    "|a|b|\n",
    "[r]: x\n",
    "http://",
    "http://a.com/x ",
    "http://a.com/x,",
    "https:\\/\\/",
    "www.",
    "//a.com/",
    "ftp://a.com/",
    "a.com/,b.org?",
    "a.",
    "a@",
    "a@a.com ",
    "mailto:",
    "xn--a.com ",
    "http://[::1]/ ",
    "\u65e5\u672ca.com",
    "\\",
    "&amp;",
    "&#x41;",
    "%C3",
    "?a=b&",
    "[1]",
    "()",
    " ",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "\ud800",
    "\u202e",
    "\u0301",
    '[a](http://a.com "',
    "[a](<",
    "](http://a.com/ a ",
    "a dot b[.]",
    "<think>",
    "```a\n",
    "<!-- -->",
)
