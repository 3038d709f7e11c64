"""How many tokens a page adds to a question, by the cited pages that are cached: for estimates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from mind2web2.errors import DocumentError
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.tokens import BYTES_A_TOKEN, PART_SIZE_PX
from mind2web2.llm_client.prices import image_tokens
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.prepared_page import PageSettings
from mind2web2.utils.images import size_px

# A page that is not cached yet, and one whose size is not known, such as a PDF.
_USUAL_TOKENS, _USUAL_IMAGES = 4000, 3
_SHOWN = PageSettings()
_MAX_PARTS = _SHOWN.image_max_height // _SHOWN.part_height
# The size of a JPEG stands in its first bytes.
_HEADER_BYTES = 1 << 16


def likely_page_tokens(cache: CacheFileSys, urls: Iterable[str], judge: JudgeSpec) -> float:
    """Return the mean tokens of a page, text and images.

    Pages that are not cached count as usual ones.
    """
    return fmean([_page_tokens(cache, url, judge) for url in urls] or [_usual_tokens(judge)])


def _usual_tokens(judge: JudgeSpec) -> int:
    return _USUAL_TOKENS + _image_tokens(judge, _USUAL_IMAGES * PART_SIZE_PX[1], PART_SIZE_PX[0])


def _page_tokens(cache: CacheFileSys, url: str, judge: JudgeSpec) -> int:
    files = {path.suffix: path for path in cache.page_files(url)}
    text = files.get(".txt")
    if text is None:
        return _usual_tokens(judge)
    tokens = min(text.stat().st_size, _SHOWN.max_text_chars) // BYTES_A_TOKEN
    width_px, height_px = _size_px(files.get(".jpg"))
    return tokens + _image_tokens(judge, height_px, width_px)


def _size_px(image: Path | None) -> tuple[int, int]:
    if image is None:
        return 0, 0
    with image.open("rb") as file:
        start = file.read(_HEADER_BYTES)
    try:
        return size_px(start)
    except DocumentError:
        return PART_SIZE_PX


def _image_tokens(judge: JudgeSpec, height_px: int, width_px: int) -> int:
    """Return the tokens of a screenshot in the parts in which the judge sees it."""
    parts = min(math.ceil(height_px / _SHOWN.part_height), _MAX_PARTS)
    shown = parts if judge.max_images is None else min(parts, judge.max_images)
    if not shown:
        return 0
    part_px = min(math.ceil(height_px / parts), _SHOWN.part_height)
    return shown * image_tokens(judge.model, width_px, part_px)
