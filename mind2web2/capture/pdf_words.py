"""The text of a PDF's page without what its readers do not see."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pypdfium2  # type: ignore[import-untyped]  # it ships without types
    from PIL import Image

# On a scale of 255. Lighter text may vanish on paper, fainter text vanishes anywhere.
_LIGHT = 128
_FAINT = 13
_SAME_GREY = 8
_UNREADABLE_PT = 1.0
# Pixels a point, at which a letter's thinnest stroke still leaves a trace.
_SCALE = 2.0
_MAX_PIXELS = 12_000_000


@dataclass(frozen=True, slots=True)
class PageWords:
    """A page's visible text, and the hidden text that was left out.

    Args:
        text: as PDFium gives it, with a mark in the place of each hidden stretch.
        hidden: the hidden stretches, one a line.
    """

    text: str
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Characters of one text object, from ``start`` up to ``end``.

    Args:
        text_object: PDFium's handle.
        box_pt: left, bottom, right, top on the page.
        is_light: it paints something, in a colour that may vanish on paper.
        is_tiny: it has letters, and none is large enough to be read.
    """

    start: int
    end: int
    text_object: Any  # ctypes has no type for handles
    box_pt: tuple[float, float, float, float]
    is_light: bool
    is_tiny: bool


def words_of(page: pypdfium2.PdfPage) -> PageWords:
    """Return a page's text without its hidden parts."""
    text_page = page.get_textpage()
    stretches = list(filter(None, _stretches(text_page)))
    hidden = _unseen(page, stretches) if stretches else []
    if not hidden:
        return PageWords(text_page.get_text_bounded())
    return _without(text_page, hidden)


def _stretches(text_page: pypdfium2.PdfTextPage) -> Iterator[_Stretch | None]:
    """Look at each text object once; those of no size, or without a font, are ``None``."""
    from pypdfium2 import raw

    start, current, handle = 0, 0, None
    count = text_page.count_chars()
    for index in range(count):
        text_object = raw.FPDFText_GetTextObject(text_page, index)
        address = ctypes.cast(text_object, ctypes.c_void_p).value or 0
        # Spaces and line ends that PDFium adds belong to no object.
        if address in (0, current):
            continue
        if current:
            yield _stretch(text_page, start, index, handle)
        start, current, handle = index, address, text_object
    if current:
        yield _stretch(text_page, start, count, handle)


def _stretch(
    text_page: pypdfium2.PdfTextPage, start: int, end: int, text_object: Any
) -> _Stretch | None:
    from pypdfium2 import raw

    mode = raw.FPDFTextObj_GetTextRenderMode(text_object)
    red = ctypes.c_uint()
    green = ctypes.c_uint()
    blue = ctypes.c_uint()
    alpha = ctypes.c_uint()
    is_coloured = raw.FPDFPageObj_GetFillColor(text_object, red, green, blue, alpha)
    grey = (red.value * 299 + green.value * 587 + blue.value * 114) // 1000
    is_inked = mode not in (
        raw.FPDF_TEXTRENDERMODE_INVISIBLE,
        raw.FPDF_TEXTRENDERMODE_CLIP,
    )
    if is_coloured and alpha.value <= _FAINT:
        is_inked = False
    is_tiny = all(_is_tiny(text_page, index) for index in range(start, end))
    # A dot or a dash is small in every font.
    is_tiny = is_tiny and any(map(str.isalnum, _text(text_page, start, end)))
    box = _box(text_page, start, end)
    font = raw.FPDFTextObj_GetFont(text_object)
    if box is None or (is_inked and not _has_outlines(text_page, start, end, font)):
        return None
    return _Stretch(start, end, text_object, box, is_inked and grey >= _LIGHT, is_tiny)


def _has_outlines(text_page: pypdfium2.PdfTextPage, start: int, end: int, font: Any) -> bool:
    """Tell whether the file or this machine has the letters; others leave no trace."""
    from pypdfium2 import raw

    if raw.FPDFFont_GetIsEmbedded(font):
        return True
    letters = filter(str.isalnum, set(_text(text_page, start, end)))
    return all(has_outline(font, letter) for letter in letters)


def has_outline(font: Any, letter: str) -> bool:
    """Tell whether a font that is not embedded draws a letter on this machine."""
    from pypdfium2 import raw

    return bool(raw.FPDFFont_GetGlyphPath(font, ord(letter), 12))


def _is_tiny(text_page: pypdfium2.PdfTextPage, index: int) -> bool:
    left, bottom, right, top = text_page.get_charbox(index)
    size_pt = max(right - left, top - bottom)
    return bool(size_pt < _UNREADABLE_PT)


def _box(
    text_page: pypdfium2.PdfTextPage, start: int, end: int
) -> tuple[float, float, float, float] | None:
    boxes = []
    for index in range(start, end):
        left, bottom, right, top = text_page.get_charbox(index)
        if right > left and top > bottom:
            boxes.append((left, bottom, right, top))
    if not boxes:
        return None
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)


def _unseen(page: pypdfium2.PdfPage, stretches: Sequence[_Stretch]) -> list[_Stretch]:
    """Return the stretches without which the page looks the same.

    PDFium itself leaves out those outside of the page, such as a printer's marks.
    """
    from pypdfium2 import raw

    with_them = _picture(page)
    light = [stretch for stretch in stretches if stretch.is_light]
    for stretch in light:
        raw.FPDFPageObj_SetIsActive(stretch.text_object, False)
    without_them = _picture(page) if light else with_them
    for stretch in light:
        raw.FPDFPageObj_SetIsActive(stretch.text_object, True)
    unseen = [each for each in stretches if not _is_seen(each, page, with_them, without_them)]
    is_outside = all(_area_px(each, page, with_them) is None for each in unseen)
    return [] if is_outside else unseen


def _is_seen(
    stretch: _Stretch,
    page: pypdfium2.PdfPage,
    picture: Image.Image,
    without: Image.Image,
) -> bool:
    from PIL import ImageChops, ImageStat

    area = _area_px(stretch, page, picture)
    if area is None or stretch.is_tiny:
        return False
    drawn = picture.crop(area)
    if not stretch.is_light:
        # Dark letters stand out unless something lies over them. The text of a scanned page lies
        # over its letters in the scan, or under them.
        darkest, lightest = ImageStat.Stat(drawn).extrema[0]
        return lightest - darkest > _SAME_GREY
    difference = ImageChops.difference(drawn, without.crop(area))
    _, greatest = ImageStat.Stat(difference).extrema[0]
    return greatest > _SAME_GREY


def _area_px(
    stretch: _Stretch, page: pypdfium2.PdfPage, picture: Image.Image
) -> tuple[int, int, int, int] | None:
    """Return where a stretch stands in the page's picture; ``None`` outside of it.

    A pixel around it is the ground of a dash or a box, which fill all of theirs.
    """
    from pypdfium2 import raw

    corners = []
    left, bottom, right, top = stretch.box_pt
    for x, y in ((left, bottom), (right, top)):
        at_x = ctypes.c_int()
        at_y = ctypes.c_int()
        raw.FPDF_PageToDevice(page, 0, 0, picture.width, picture.height, 0, x, y, at_x, at_y)
        corners.append((at_x.value, at_y.value))
    xs, ys = zip(*corners, strict=True)
    first_x = max(0, min(xs) - 1)
    first_y = max(0, min(ys) - 1)
    end_x = min(picture.width, max(xs) + 2)
    end_y = min(picture.height, max(ys) + 2)
    if first_x >= end_x or first_y >= end_y:
        return None
    return first_x, first_y, end_x, end_y


def _picture(page: pypdfium2.PdfPage) -> Image.Image:
    width_pt, height_pt = page.get_size()
    scale = min(_SCALE, (_MAX_PIXELS / (width_pt * height_pt)) ** 0.5)
    picture: Image.Image = page.render(scale=scale, grayscale=True).to_pil().convert("L")
    return picture


def _without(text_page: pypdfium2.PdfTextPage, hidden: Sequence[_Stretch]) -> PageWords:
    """Return the text in stretches, so that visible text stays as PDFium returns it."""
    pieces: list[str] = []
    left_out: list[str] = []
    position = 0
    for stretch in _merged(hidden):
        pieces.append(_text(text_page, position, stretch.start))
        secret = _text(text_page, stretch.start, stretch.end)
        left_out.append(secret)
        pieces.append(
            f"[hidden text left out: {len(secret.strip())} characters]\n"
            if secret.strip()
            else secret
        )
        position = stretch.end
    pieces.append(_text(text_page, position, text_page.count_chars()))
    return PageWords("".join(pieces), "\n".join(left_out))


def _merged(hidden: Sequence[_Stretch]) -> list[_Stretch]:
    """Return stretches that follow each other as one."""
    merged: list[_Stretch] = []
    for stretch in hidden:
        if merged and merged[-1].end == stretch.start:
            merged[-1] = replace(merged[-1], end=stretch.end)
        else:
            merged.append(stretch)
    return merged


def _text(text_page: pypdfium2.PdfTextPage, start: int, end: int) -> str:
    if end > start:
        return str(text_page.get_text_range(start, end - start))
    return ""
