"""Sentences that are turned around or removed: negations, comparisons and whole passages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from random import Random

from mind2web2.plugins.probe.claim_facts import page_facts, quoted_facts
from mind2web2.plugins.probe.edits import Change, Discarded, Edit, apply_edits
from mind2web2.plugins.probe.passages import (
    JudgedPage,
    Sentence,
    content_words,
    first_content_word,
    speaks_of,
)
from mind2web2.utils.facts import Fact, facts_in, facts_of_kind

# A value may say what the claim says if so many of the claim's words stand so near.
_SUBJECT_CHARS = 150
_SUBJECT_WORDS = 2
_NEARLY_ALL = 0.8
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|does|do|did|must|(?-i:may)|should)\b"
    r"( not\b|n[\u2019']t\b)?",
    re.IGNORECASE,
)


def change_negation(page: JudgedPage, random: Random) -> Change | Discarded | None:  # noqa: ARG001 (each sentence has one form)
    """Negate each sentence that may support the claim, or take its negation away."""
    quoted = [_negation(page, sentence) for sentence in page.quoted]
    edits = [edit for edit in quoted if edit is not None]
    if len(edits) != 1:
        # One edit of several sentences would leave another one that may say it.
        return None
    for sentence in page.supporting:
        if page.is_quoted(sentence) or not _may_support(page, sentence):
            continue
        edit = _negation(page, sentence)
        if edit is None:
            return Discarded("negation", "another sentence about it cannot be negated")
        edits.append(edit)
    return apply_edits("negation", page, edits)


def _negation(page: JudgedPage, sentence: Sentence) -> Edit | None:
    """Return the edit that negates what a sentence says about the claim.

    The result is ``None`` if it is not clear how to negate the sentence.

    The one auxiliary verb stands before a word of the claim, unlike that in "holds 9 litres when it
    is full", and before the claimed fact, unlike that in "born in 1954, is a chemist".
    """
    matches = list(_AUXILIARY.finditer(page.text, sentence.start, sentence.end))
    if len(matches) != 1:
        return None
    verb_end = matches[0].end()
    if first_content_word(page.text[verb_end : sentence.end]) not in page.claim_words:
        return None
    values = {fact.value for fact in facts_in(page.claim)}
    said = facts_in(page.text[sentence.start : sentence.end])
    shared = [fact for fact in said if fact.value in values]
    is_subject_alone = len(shared) == 1 and shared[0].kind == "name"
    if shared and not is_subject_alone and sentence.start + shared[-1].start < verb_end:
        return None
    return _negate(matches[0])


def _may_support(page: JudgedPage, sentence: Sentence) -> bool:
    """Tell whether a sentence may say what the claim says.

    A heading does not, nor does a sentence about a sibling. Others have a number or date of the
    claim. If the claim has none, they have nearly all its words.
    """
    text = page.text[sentence.start : sentence.end]
    if text.startswith("#") or _is_of_sibling(page, text):
        return False
    values = _claim_values(page)
    if not values:
        return _has_nearly_all_words(page, text)
    return any(fact.value in values for fact in facts_in(text))


def _claim_values(page: JudgedPage) -> set[str]:
    facts = [*quoted_facts(page, "number"), *quoted_facts(page, "date")]
    return {fact.value for fact in facts}


def _negate(match: re.Match[str]) -> Edit:
    verb, negation = match[1], match[2]
    if negation:
        return Edit(*match.span(), verb)
    return Edit(*match.span(), "cannot" if verb.lower() == "can" else f"{verb} not")


_OPPOSITES = {
    word: other
    for pair in (
        "more less",
        "most least",
        "higher lower",
        "highest lowest",
        "larger smaller",
        "largest smallest",
        "longer shorter",
        "longest shortest",
        "older newer",
        "oldest newest",
        "before after",
        "first last",
        "above below",
        "maximum minimum",
        "increased decreased",
        "increase decrease",
        "rose fell",
        "best worst",
        "cheaper dearer",
        "cheapest dearest",
        "earlier later",
        "faster slower",
        "fastest slowest",
        "north south",
        "east west",
    )
    for word, other in (pair.split(), pair.split()[::-1])
}
_COMPARATIVE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b", re.IGNORECASE)


def change_comparison(page: JudgedPage, random: Random) -> Change | Discarded | None:
    """Turn a comparison of the claim around.

    Each sentence that has the comparison with the claim's other words is changed.
    """
    claimed = {match[0].lower() for match in _COMPARATIVE.finditer(page.claim)}
    quoted = " ".join(page.text[each.start : each.end] for each in page.quoted)
    shared = sorted(claimed & {match[0].lower() for match in _COMPARATIVE.finditer(quoted)})
    if not shared:
        return None
    word = random.choice(shared)
    form = re.compile(rf"\b{word}\b", re.IGNORECASE)
    edits = []
    for sentence in page.supporting:
        matches = list(form.finditer(page.text, sentence.start, sentence.end))
        # Two comparisons that are both turned around may say the same.
        if len(matches) > 1 or not all(_is_beside_claim(page, sentence, each) for each in matches):
            return None
        edits += [Edit(*each.span(), _in_case_of(each[0], _OPPOSITES[word])) for each in matches]
    others = [each for each in page.supporting if not page.is_quoted(each)]
    if any(word not in _sentence(page, each) for each in others):
        return Discarded("comparison", "another sentence says it in other words")
    return apply_edits("comparison", page, edits)


def _is_beside_claim(page: JudgedPage, sentence: Sentence, word: re.Match[str]) -> bool:
    """Tell whether the word before or behind a comparison is one of the claim."""
    before = page.text[sentence.start : word.start()].split()[-1:]
    behind = first_content_word(page.text[word.end() : sentence.end])
    return behind in page.claim_words or bool(content_words("".join(before)) & page.claim_words)


def _sentence(page: JudgedPage, sentence: Sentence) -> str:
    return page.text[sentence.start : sentence.end].lower()


def _in_case_of(written: str, word: str) -> str:
    return word.capitalize() if written[0].isupper() else word


def remove_passage(page: JudgedPage, random: Random) -> Change | Discarded | None:  # noqa: ARG001 (nothing to choose)
    """Remove the quoted sentences and all others that speak about the claim."""
    edits = [Edit(each.start, each.end, "") for each in page.supporting]
    if not edits:
        return None
    change = apply_edits("passage", page, edits)
    values = _claim_values(page)
    facts = (*page_facts(page.text, "number"), *page_facts(page.text, "date"))
    elsewhere = [
        fact for fact in facts if fact.value in values and not _is_within(fact, page.supporting)
    ]
    if any(_is_about_claim(page, fact) for fact in elsewhere):
        return Discarded("passage", "the page has a value of the claim elsewhere")
    if _address_says(page, values):
        return Discarded("passage", "the page's address says it")
    return change


def _address_says(page: JudgedPage, values: set[str]) -> bool:
    """Tell whether the address has most of the claim's words, and its values."""
    said = {fact.value for fact in facts_in(page.address)} | content_words(page.address)
    if values:
        return values <= said and speaks_of(page.claim_words, page.address)
    return _has_nearly_all_words(page, page.address)


def _has_nearly_all_words(page: JudgedPage, text: str) -> bool:
    return len(page.claim_words & content_words(text)) >= _NEARLY_ALL * len(page.claim_words)


def _is_of_sibling(page: JudgedPage, text: str) -> bool:
    """Tell whether a sentence is about a sibling of the claim's subject, like another festival."""
    claimed = facts_of_kind(page.claim, "name")
    kinds = {word for name in claimed for word in _kind_words(page.claim, name)}
    names = facts_of_kind(text, "name")
    if {name.value for name in claimed} <= {name.value for name in names}:
        return False
    return any(
        not content_words(name.text) <= page.claim_words and kinds & set(_kind_words(text, name))
        for name in names
    )


def _kind_words(text: str, name: Fact) -> list[str]:
    """Return the words that may say what a name is of: its last one, and the one behind it."""
    behind = first_content_word(text[name.end :])
    words = [*name.value.split()[1:][-1:], behind]
    return [word for word in words if word is not None]


def _is_about_claim(page: JudgedPage, fact: Fact) -> bool:
    """Tell whether a value stands among words of the claim, beside the value itself."""
    sentence = page.sentence_at(fact.start)
    if _is_of_sibling(page, page.text[sentence.start : sentence.end]):
        return False
    around = page.text[max(0, fact.start - _SUBJECT_CHARS) : fact.end + _SUBJECT_CHARS]
    words = {word for word in page.claim_words if not word[0].isdigit()}
    return len(words & content_words(around)) >= min(_SUBJECT_WORDS, len(words))


def _is_within(fact: Fact, passages: Iterable[Sentence]) -> bool:
    return any(each.start <= fact.start < each.end for each in passages)
