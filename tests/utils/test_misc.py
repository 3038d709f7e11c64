"""Small things that eval scripts import."""

import base64
from io import BytesIO

import pytest
from PIL import Image

from mind2web2.utils.misc import (
    encode_image,
    encode_image_buffer,
    normalize_url_markdown,
    strip_extension,
    text_dedent,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n    one\n      two\n\n    three\n    ", "one\n  two\n\nthree"),
        ("plain", "plain"),
        ("\n\n  a\n b\n", " a\nb"),
        ("   ", ""),
        ("", ""),
    ],
)
def test_text_dedent(text, expected):
    """Relative indentation and inner blank lines stay."""
    assert text_dedent(text) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("https://a.com/x\\_y\\(z\\)", "https://a.com/x_y(z)"),
        ("<https://a.com/a b>", "https://a.com/a b"),
        ('https://a.com/x "A title"', "https://a.com/x"),
        ("https://a.com/x 'A title'", "https://a.com/x"),
        ("<https://a.com/x> (A title)", "https://a.com/x"),
        ("[text](https://a.com/x_(y))", "https://a.com/x_(y)"),
        ("[te\\]xt](<https://a.com/x> \"T\")", "https://a.com/x"),
        ("https://a.com/?a=1&amp;b=2&copy=3", "https://a.com/?a=1&b=2&copy=3"),
        (" https://a.com/x(y) ", "https://a.com/x(y)"),
        ("", ""),
    ],
)  # fmt: skip
def test_normalize_url_markdown(target, expected):
    assert normalize_url_markdown(target) == expected


def test_images_become_base64(tmp_path):
    """Encoded bytes stay as they are, wherever they come from."""
    raw = b"\x89PNG\r\n any bytes"
    (tmp_path / "image.png").write_bytes(raw)
    buffer = BytesIO(raw)
    buffer.read()
    texts = {
        encode_image(tmp_path / "image.png"),
        encode_image(str(tmp_path / "image.png")),
    }
    texts |= {encode_image_buffer(raw), encode_image_buffer(buffer)}
    assert texts == {base64.b64encode(raw).decode()}


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P"])
def test_a_pillow_image_becomes_jpeg(mode):
    """Any mode is encoded, at its size."""
    encoded = base64.b64decode(encode_image_buffer(Image.new(mode, (30, 20))))
    with Image.open(BytesIO(encoded)) as image:
        assert (image.format, image.size) == ("JPEG", (30, 20))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("answer_1.md", "answer_1"),
        ("a.tar.gz", "a.tar"),
        ("none", "none"),
        (".env", ".env"),
        ("x.y/z", "x.y/z"),
    ],
)
def test_strip_extension(name, expected):
    assert strip_extension(name) == expected
