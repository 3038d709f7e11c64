"""Long runs of words that a page shares with a task's question.

Such a run is a sign that the page has the task.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import NamedTuple

from mind2web2.capture.pdf import text_of
from mind2web2.errors import CacheMiss, DocumentError
from mind2web2.pages.barred import BarredPage, default_barred
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.citations import cited_urls
from mind2web2.utils.workers import call_in_worker

log = logging.getLogger(__name__)

_PDF_TIMEOUT_S = 60.0

RUN_WORDS = 8
# A title or a name may be eight words long; three runs, one after another, are ten words.
_MIN_RUNS = 3
_WORD = re.compile(r"\w+")


class SharedWords(NamedTuple):
    """The words that a page shares with a question.

    Args:
        share: of the question's runs of eight words, those that are on the page.
        passage: the longest stretch of the question that is on the page.
    """

    share: float
    passage: str


def shared_words(question: str, text: str) -> SharedWords | None:
    """Return what a page shares with a question.

    The result is ``None`` if that is less than ten words in a row.
    """
    places = list(_WORD.finditer(question))
    words = [place[0].casefold() for place in places]
    starts = range(len(words) - RUN_WORDS + 1)
    if len(starts) < _MIN_RUNS:
        return None
    on_page = _runs([word.casefold() for word in _WORD.findall(text)])
    hits = [tuple(words[start : start + RUN_WORDS]) in on_page for start in starts]
    first, count = _longest(hits)
    if count < _MIN_RUNS:
        return None
    last = first + count - 1 + RUN_WORDS - 1
    passage = question[places[first].start() : places[last].end()]
    return SharedWords(sum(hits) / len(hits), " ".join(passage.split()))


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    ends = range(RUN_WORDS, len(words) + 1)
    return {tuple(words[end - RUN_WORDS : end]) for end in ends}


def _longest(hits: list[bool]) -> tuple[int, int]:
    """Return where the longest stretch of hits begins, and how long it is."""
    best, begin = (0, 0), 0
    for place, is_hit in enumerate([*hits, False]):
        if is_hit:
            continue
        best = max(best, (begin, place - begin), key=lambda stretch: stretch[1])
        begin = place + 1
    return best


def unfair_sources(
    answer: str, judged: Iterable[str], pages: CacheFileSys, question: str
) -> list[BarredPage]:
    """Return the barred sources of an answer, and the pages that share long runs with its question.

    Reads files.

    Args:
        judged: further pages, on which the answer was judged.
    """
    urls = dict.fromkeys([*cited_urls(answer), *judged])
    found = default_barred().sources_of("", urls, pages)
    listed = {each["url"] for each in found}
    for url in urls if len(question.split()) >= RUN_WORDS else ():
        shared = None if url in listed else shared_words(question, _text_of(url, pages))
        if shared is not None:
            rule = f"the page has {shared.share:.0%} of the question's runs of {RUN_WORDS} words"
            found.append({"url": url, "rule": rule, "shown": shared.passage})
    return found


def _text_of(url: str, pages: CacheFileSys) -> str:
    """Return the text of a stored page, empty if there is none that can be read."""
    try:
        match pages.has(url):
            case "web":
                return pages.get_web(url, get_screenshot=False)[0]
            case "pdf":
                return call_in_worker(text_of, pages.get_pdf(url), timeout_s=_PDF_TIMEOUT_S)
    except (CacheMiss, DocumentError) as error:
        log.debug("page not searched for the question url=%s reason=%s", url, error)
    return ""
