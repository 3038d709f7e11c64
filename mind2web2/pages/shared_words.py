"""Long runs of words that a page shares with a task's question.

Such a run is a sign that the page has the task.
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
