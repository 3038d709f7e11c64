"""The sentences of a page, and which of them speak about a claim."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

# A sentence speaks about a claim if it has this share of the claim's content words.
SAME_SUBJECT = 0.6
_SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[\u3002\uff01\uff1f])|\n+")
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")
_STOP_WORDS = set(
    re.findall(
        r"\w+",
        """a an and are as at be been by can for from had has have he her his if in into is it its may of on
        or she so than that the their them then there they this to was were which who will with would not page
        according says states""",
    )
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or a line of a page, by its place in the text."""

    start: int
    end: int


@dataclass(frozen=True)
class JudgedPage:
    """A page, and the claim that a judge found supported by a quotation from it.

    Args:
        start: the place of the quotation, in characters of the text.
        end: the place behind its last character.
        address: the page's URL, which the judge sees, too.
    """

    claim: str
    text: str
    start: int
    end: int
    address: str = ""

    @cached_property
    def claim_words(self) -> frozenset[str]:
        """Return the claim's content words."""
        return content_words(self.claim)

    @cached_property
    def supporting(self) -> list[Sentence]:
        """Return the quoted sentences, and all others that speak about the claim."""
        return [
            sentence
            for sentence in sentences(self.text)
            if self.is_quoted(sentence) or self.speaks_of_claim(sentence)
        ]

    @cached_property
    def quoted(self) -> list[Sentence]:
        """Return the sentences that the quotation is part of."""
        return [each for each in self.supporting if self.is_quoted(each)]

    def sentence_at(self, place: int) -> Sentence:
        """Return the sentence that has a place, or that ends before it."""
        all_sentences = sentences(self.text)
        number = bisect_left(all_sentences, place + 1, key=lambda sentence: sentence.start)
        return all_sentences[max(0, number - 1)]

    def is_quoted(self, sentence: Sentence) -> bool:
        """Tell whether a sentence overlaps the quotation."""
        return sentence.start < self.end and self.start < sentence.end

    def speaks_of_claim(self, sentence: Sentence) -> bool:
        """Tell whether a sentence has most of the claim's content words."""
        return speaks_of(self.claim_words, self.text[sentence.start : sentence.end])


@lru_cache(maxsize=16)
def sentences(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of a text.

    A line break ends a sentence, as tables and lists have no periods.
    """
    spans: list[Sentence] = []
    start = 0
    for gap in _SENTENCE_BREAK.finditer(text):
        if gap.start() > start:
            spans.append(Sentence(start, gap.start()))
        start = gap.end()
    if start < len(text):
        spans.append(Sentence(start, len(text)))
    return tuple(spans)


def content_words(text: str) -> frozenset[str]:
    """Return the words that carry a text's meaning, in lower case.

    Chinese and Japanese texts have the signs.
    """
    return frozenset(_meaningful_words(text))


def first_content_word(text: str) -> str | None:
    """Return the first word of a text that carries meaning."""
    return next(_meaningful_words(text), None)


def _meaningful_words(text: str) -> Iterator[str]:
    words = (match[0].casefold() for match in _WORD.finditer(text))
    return (word for word in words if word not in _STOP_WORDS)


def speaks_of(claim_words: frozenset[str], text: str) -> bool:
    """Tell whether a text has most of a claim's content words."""
    if not claim_words:
        return False
    shared = len(claim_words & content_words(text))
    return shared / len(claim_words) >= SAME_SUBJECT
