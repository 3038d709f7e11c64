"""The labelled set: claims and forms about invented pages with drawn screenshots, and their right replies."""

from __future__ import annotations

import hashlib
import io
import random
import textwrap
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

from PIL import Image, ImageDraw, ImageFont
from pydantic import BaseModel, ConfigDict, create_model

from mind2web2.capture.models import TroubleKind

FieldKind = Literal["text", "integer", "number", "list"]
_FILE = Path(__file__).with_name("labelled_set.json")
_TYPES: dict[FieldKind, Any] = {
    "text": str | None,
    "integer": int | None,
    "number": float | None,
    "list": list[str],
}


class Picture(BaseModel):
    """An image on a page: a poster with lines of text, or a chart with a labelled bar for each row."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["poster", "chart"]
    title: str
    rows: tuple[tuple[str | int, ...], ...]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LabelledPage(_Part):
    """A page as a capture stores it; its screenshot is drawn from the text and the picture."""

    text: str
    picture: Picture | None = None
    trouble: TroubleKind | None = None
    unfolded: tuple[str, ...] = ()


class Case(_Part):
    """One question; its right reply is ``right``.

    Args:
        question: the claim, or the fields to extract.
    """

    id: str
    category: str
    task: str
    answer: str
    question: str

    @property
    def pair(self) -> str:
        """Return the name that a true claim shares with its false twin."""
        return self.id.removesuffix("-true").removesuffix("-false")


class LabelledClaim(Case):
    """A claim with its true verdict.

    Args:
        urls: the pages given as its sources; none for a claim about the answer.
        supported_by: those of them that support it.
    """

    right: bool
    urls: tuple[str, ...]
    supported_by: tuple[str, ...]


class LabelledForm(Case):
    """An extraction with its right values.

    Args:
        url: the page to read; ``None`` for the answer.
    """

    right: Mapping[str, str | int | float | list[str] | None]
    url: str | None
    fields: Mapping[str, FieldKind]

    def template(self) -> type[BaseModel]:
        """Return the template to fill."""
        fields: dict[str, Any] = {
            name: (_TYPES[kind], ...) for name, kind in self.fields.items()
        }
        return create_model("Form", **fields)

    def is_filled_rightly(self, value: BaseModel) -> bool:
        """Compare values, but for letter case, white space, a final full stop and the order of a list."""
        given = value.model_dump()
        return all(
            _plain(given[name]) == _plain(wanted) for name, wanted in self.right.items()
        )


def _plain(value: object) -> object:
    if isinstance(value, list):
        return sorted(str(_plain(item)) for item in value)
    if isinstance(value, str):
        return " ".join(value.casefold().split()).removesuffix(".") or None
    return value


class LabelledSet(NamedTuple):
    """The cases with their pages by address.

    Args:
        digest: the beginning of the file's SHA-256.
        is_whole: nothing was left out.
        has_screenshots: pages are drawn; texts that others labelled are not.
    """

    version: int
    digest: str
    pages: Mapping[str, LabelledPage]
    claims: tuple[LabelledClaim, ...]
    forms: tuple[LabelledForm, ...]
    is_whole: bool = True
    has_screenshots: bool = True

    @property
    def cases(self) -> tuple[LabelledClaim | LabelledForm, ...]:
        """Return claims and forms."""
        return *self.claims, *self.forms

    @property
    def categories(self) -> list[str]:
        """Return the categories in the order of the set."""
        return list(dict.fromkeys(case.category for case in self.cases))

    def of(self, categories: Collection[str]) -> LabelledSet:
        """Return the part with these categories."""
        return self._only(
            {case.id for case in self.cases if case.category in categories}
        )

    def sample(self, size: int) -> LabelledSet:
        """Return so many cases, as many of each category as possible; true claims with their false twins."""
        drawn = random.Random(0)
        queues: dict[str, list[list[str]]] = defaultdict(list)
        for (category, _), twins in groupby(
            self.cases, lambda case: (case.category, case.pair)
        ):
            queues[category].append([case.id for case in twins])
        turns = []
        for queue in queues.values():
            drawn.shuffle(queue)
            turns += [(place, drawn.random(), ids) for place, ids in enumerate(queue)]
        chosen: set[str] = set()
        for _, _, ids in sorted(turns):
            if len(chosen) + len(ids) <= size:
                chosen.update(ids)
        return self._only(chosen)

    def _only(self, ids: Collection[str]) -> LabelledSet:
        claims = tuple(case for case in self.claims if case.id in ids)
        forms = tuple(case for case in self.forms if case.id in ids)
        urls = {url for claim in claims for url in claim.urls} | {
            form.url for form in forms
        }
        pages = {url: page for url, page in self.pages.items() if url in urls}
        is_whole = self.is_whole and len(claims) + len(forms) == len(self.cases)
        return self._replace(pages=pages, claims=claims, forms=forms, is_whole=is_whole)


class _File(_Part):
    version: int
    seed: int
    pages: dict[str, LabelledPage]
    claims: tuple[LabelledClaim, ...]
    extractions: tuple[LabelledForm, ...]


@cache
def labelled_set() -> LabelledSet:
    """Return the set that belongs to this version of the package."""
    content = _FILE.read_bytes()
    file = _File.model_validate_json(content)
    digest = hashlib.sha256(content).hexdigest()[:12]
    return LabelledSet(file.version, digest, file.pages, file.claims, file.extractions)


# The screenshot of an invented page, drawn from its text; the same bytes for the same text

# Stands in the text where the page shows its picture.
IMAGE_MARK = "[image]"
_WIDTH_PX, _MARGIN_PX, _LINE_PX, _LINE_CHARS = 900, 40, 26, 92
_TEXT_PX, _TITLE_PX, _POSTER_PX = 18, 28, 34
_INK, _PALE, _PAPER = 30, 190, 255


def can_be_drawn(text: str) -> bool:
    """Tell whether Pillow's own font has the letters of a text."""
    return text.isascii()


def screenshot(text: str, picture: Picture | None = None) -> bytes:
    """Return a page's text, laid out simply, with its picture in place of the mark, as a JPEG."""
    canvas = _Canvas(
        sum(_height(line, picture) for line in _lines(text)) + 2 * _MARGIN_PX
    )
    for line in _lines(text):
        if line == IMAGE_MARK and picture is not None:
            canvas.picture(picture)
        elif line.startswith("|"):
            canvas.row([cell.strip() for cell in line.strip("|").split("|")])
        elif line.startswith("#"):
            canvas.text(line.lstrip("# "), _TITLE_PX, _LINE_PX * 2)
        else:
            canvas.text(line, _TEXT_PX, _LINE_PX)
    content = io.BytesIO()
    canvas.image.save(content, "JPEG", quality=60)
    return content.getvalue()


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith(("| ---", "|", "#")):
            if not line.startswith("| ---"):
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
            self._draw.rectangle(
                (left, self._y, left + width, self._y + _LINE_PX), outline=_PALE
            )
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
            y = (
                top
                + (2 * place + 1) * _LINE_PX
                + (_LINE_PX // 2 if not is_poster else 0)
            )
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
