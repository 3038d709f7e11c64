"""A guess at what an evaluation takes where nothing like it has been evaluated yet.

It assumes two claims on each cited page and four on the answer as a whole, two votes on each claim, and one
extraction; the lengths of the answer and of the cited pages that are cached are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mind2web2.errors import CacheMiss, CacheReadError, DocumentError
from mind2web2.llm_client.image_tokens import image_tokens
from mind2web2.page_library import PageSettings
from mind2web2.prompts import instructions
from mind2web2.request_size import BYTES_A_TOKEN, PART_SIZE_PX, text_tokens
from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.utils.images import size_px

_VOTES = 2
_CLAIMS_A_PAGE = 2
_CLAIMS_ON_THE_ANSWER = 4
_EXTRACTIONS = 1
# The task's description, the claim, the delimiters.
_QUESTION_TOKENS = 500
_OUTPUT_TOKENS = 400
_CACHED_SHARE = 0.5
# A page that is not cached, or a PDF: text, and images of the size of a screenshot's parts.
_UNKNOWN_PAGE_TOKENS = 4000
_UNKNOWN_PAGE_IMAGES = 3
# Enough for a mean; reading them takes time.
_PAGES_LOOKED_AT = 10


def guessed_requests(page_count: int) -> int:
    """Return how many judgments an answer that cites so many pages takes."""
    return _EXTRACTIONS + _VOTES * (_CLAIMS_ON_THE_ANSWER + _CLAIMS_A_PAGE * page_count)


def guessed_tokens(answer: str, page_count: int, page_tokens: float) -> tuple[float, float, float]:
    """Return tokens in, the cached part of them, and tokens out of one evaluation.

    Args:
        page_tokens: of a cited page on average, see ``mean_page_tokens``.
    """
    requests = guessed_requests(page_count)
    shared = text_tokens(instructions("verify")) + _QUESTION_TOKENS + text_tokens(answer)
    on_pages = _VOTES * _CLAIMS_A_PAGE * page_count
    tokens_in = requests * shared + on_pages * page_tokens
    return tokens_in, _CACHED_SHARE * tokens_in, requests * _OUTPUT_TOKENS


def mean_page_tokens(cache: CacheFileSys, urls: Sequence[str], model: str) -> float:
    """Return the tokens of a cited page on average, by some of those that are stored; reads files."""
    stored = [url for url in urls if cache.has(url) == "web"][:_PAGES_LOOKED_AT]
    known = [tokens for url in stored if (tokens := _page_tokens(cache, url, model)) is not None]
    unknown = _UNKNOWN_PAGE_TOKENS + _UNKNOWN_PAGE_IMAGES * image_tokens(model, *PART_SIZE_PX)
    return sum(known) / len(known) if known else unknown


def _page_tokens(cache: CacheFileSys, url: str, model: str) -> float | None:
    settings = PageSettings()
    try:
        text, screenshot = cache.get_web(url)
    except (CacheMiss, CacheReadError):
        return None
    tokens = min(text_tokens(text), settings.max_text_chars / BYTES_A_TOKEN)
    return tokens + (0 if screenshot is None else _screenshot_tokens(screenshot, settings, model))


def _screenshot_tokens(screenshot: bytes, settings: PageSettings, model: str) -> int:
    try:
        width_px, height_px = size_px(screenshot)
    except DocumentError:
        return 0
    scale = min(1.0, settings.image_max_width / width_px)
    shown_px = min(height_px * scale, settings.image_max_height)
    step_px = settings.part_height - settings.part_overlap
    parts = max(1, math.ceil((shown_px - settings.part_overlap) / step_px))
    part_px = min(shown_px, settings.part_height)
    return parts * image_tokens(model, round(width_px * scale), math.ceil(part_px))
