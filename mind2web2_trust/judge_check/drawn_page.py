"""The screenshot of an invented page, drawn from its text; the same bytes for the same text."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache

from PIL import Image, ImageDraw, ImageFont

from mind2web2_trust.judge_check.labelled_set import Picture

# This mark in the text is the place of the page's picture.
IMAGE_MARK = "[image]"
_WIDTH_PX, _MARGIN_PX, _LINE_PX, _LINE_CHARS = 900, 40, 26, 92
_TEXT_PX, _TITLE_PX, _POSTER_PX = 18, 28, 34
_INK, _PALE, _PAPER = 30, 190, 255
# A judge may see twice this height. The pages have long texts, and images cost as much as they do.
_MAX_HEIGHT_PX = 5_000


def can_be_drawn(text: str) -> bool:
    """Tell whether Pillow's own font has the letters of a text."""
    return text.isascii()


def screenshot(text: str, picture: Picture | None = None) -> bytes:
    """Return a page's text, laid out simply, with its picture in place of the mark, as a JPEG."""
    lines = _visible_lines(text, picture)
    canvas = _Canvas(_page_height(lines, picture))
    for line in lines:
        if line == IMAGE_MARK and picture is not None:
            canvas.picture(picture)
        elif line.startswith("|"):
            canvas.row([cell.strip() for cell in line.strip("|").split("|")])
        elif line.startswith("#"):
            canvas.text(line.lstrip("# "), _TITLE_PX, _LINE_PX * 2)
        else:
            canvas.text(line, _TEXT_PX, _LINE_PX)
    return _jpeg(canvas.image)


def _jpeg(image: Image.Image) -> bytes:
    content = io.BytesIO()
    image.save(content, "JPEG", quality=60)
    return content.getvalue()


def _page_height(lines: Sequence[str], picture: Picture | None) -> int:
    return sum(_height(line, picture) for line in lines) + 2 * _MARGIN_PX


def _visible_lines(text: str, picture: Picture | None) -> list[str]:
    lines = []
    height_px = 0
    for line in _lines(text):
        height_px += _height(line, picture)
        if height_px > _MAX_HEIGHT_PX:
            break
        lines.append(line)
    return lines


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith("| ---"):
            continue
        if line.startswith(("|", "#")):
            yield line
        else:
            yield from textwrap.wrap(line, _LINE_CHARS) or [""]


def _height(line: str, picture: Picture | None) -> int:
    if line == IMAGE_MARK and picture is not None:
        return _picture_height(picture)
    return _LINE_PX * 2 if line.startswith("#") else _LINE_PX


def _picture_height(picture: Picture) -> int:
    return 3 * _LINE_PX + 2 * _LINE_PX * len(picture.rows)


class _Canvas:
    def __init__(self, height_px: int) -> None:
        self.image = Image.new("L", (_WIDTH_PX, height_px), _PAPER)
        self._draw = ImageDraw.Draw(self.image)
        self._y = _MARGIN_PX

    def text(self, text: str, size_px: int, height_px: int) -> None:
        """Write one line."""
        self._write(_MARGIN_PX, self._y, text, size_px)
        self._y += height_px

    def row(self, cells: list[str]) -> None:
        """Write a row of a table, in columns of equal width."""
        width = (_WIDTH_PX - 2 * _MARGIN_PX) // len(cells)
        for place, cell in enumerate(cells):
            left = _MARGIN_PX + place * width
            self._draw.rectangle((left, self._y, left + width, self._y + _LINE_PX), outline=_PALE)
            self._write(left + 6, self._y + 3, cell, _TEXT_PX)
        self._y += _LINE_PX

    def picture(self, picture: Picture) -> None:
        """Draw a poster or a chart."""
        top, right = self._y, _WIDTH_PX - _MARGIN_PX
        bottom = top + _picture_height(picture) - _LINE_PX
        is_poster = picture.kind == "poster"
        self._draw.rectangle(
            (_MARGIN_PX, top, right, bottom),
            fill=_INK if is_poster else _PAPER,
            outline=_INK,
        )
        if not is_poster:
            self._write(_MARGIN_PX + 20, top + 8, picture.title, _TEXT_PX)
        most = max((int(row[1]) for row in picture.rows if len(row) > 1), default=1)
        for place, row in enumerate(picture.rows):
            y = top + (2 * place + 1) * _LINE_PX + (_LINE_PX // 2 if not is_poster else 0)
            if is_poster:
                self._write(_MARGIN_PX + 60, y, str(row[0]), _POSTER_PX, _PAPER)
                continue
            self._write(_MARGIN_PX + 20, y, str(row[0]), _TEXT_PX)
            end = _MARGIN_PX + 120 + 500 * int(row[1]) // most
            self._draw.rectangle((_MARGIN_PX + 120, y, end, y + _LINE_PX), fill=_PALE)
            self._write(end + 12, y, str(row[1]), _TEXT_PX)
        self._y += _picture_height(picture)

    def _write(self, x: int, y: int, text: str, size_px: int, fill: int = _INK) -> None:
        self._draw.text((x, y), text, fill=fill, font=_font(size_px))


@cache
def _font(size_px: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size_px)
