"""Sentences that are negated or removed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from mind2web2.plugin import (
    Fact,
    facts_in,
)
from mind2web2_trust.probe.claim_facts import claimed_facts, page_facts, says
from mind2web2_trust.probe.edits import Change, Discarded, Edit, Kind, apply_edits
from mind2web2_trust.probe.other_forms import says_otherwise
from mind2web2_trust.probe.passages import (
    JudgedPage,
    Sentence,
    content_words,
    first_content_word,
    sentences,
    speaks_of,
)

# A value may say what the claim says if so many of the claim's words stand so near.
_SUBJECT_CHARS = 150
_SUBJECT_WORDS = 2
_NEARLY_ALL = 0.8
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|does|do|did|must|(?-i:may)|should)\b"
    r"( not\b|n[\u2019']t\b)?",
    re.IGNORECASE,
)


# A sentence with one of these is negated already.
_OTHER_NEGATION = re.compile(r"\b(?:no|never|none|without|neither|nor|hardly)\b", re.IGNORECASE)


def change_negation(page: JudgedPage, random: Random) -> Change | Discarded | None:  # noqa: ARG001 (each sentence has one form)
    """Negate each sentence that may support the claim, or take its negation away."""
    edits = list(filter(None, (_negation(page, sentence) for sentence in page.quoted)))
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
    return _unless_elsewhere("negation", page, edits)


def _negation(page: JudgedPage, sentence: Sentence) -> Edit | None:
    """Return the edit that negates what a sentence says about the claim.

    The result is ``None`` if it is not clear how to negate the sentence.

    The one auxiliary verb stands before a word of the claim, unlike that in "holds 9 litres when it
    is full", and before the claimed fact, unlike that in "born in 1954, is a chemist".
    """
    matches = list(_AUXILIARY.finditer(page.text, sentence.start, sentence.end))
    if len(matches) != 1 or _OTHER_NEGATION.search(page.text, sentence.start, sentence.end):
        return None
    verb_end = matches[0].end()
    if first_content_word(page.text[verb_end : sentence.end]) not in page.claim_words:
        return None
    values = {fact.value for fact in facts_in(page.claim)}
    said = facts_in(page.text[sentence.start : sentence.end])
    shared = [fact for fact in said if fact.value in values]
    # "It is not schools with 52 million, followed by roads with 31" says little of roads.
    if shared and "," in page.text[verb_end : sentence.start + shared[-1].start]:
        return None
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
    return {fact.value for fact in claimed_facts(page)}


def _negate(match: re.Match[str]) -> Edit:
    verb, negation = match[1], match[2]
    if negation:
        return Edit(*match.span(), verb)
    return Edit(*match.span(), "cannot" if verb.lower() == "can" else f"{verb} not")


def remove_passage(page: JudgedPage, random: Random) -> Change | Discarded | None:  # noqa: ARG001 (nothing to choose)
    """Remove the quoted sentences and all others that speak about the claim."""
    edits = [Edit(each.start, each.end, "") for each in page.supporting]
    if not edits:
        return None
    if _address_says(page, _claim_values(page)):
        return Discarded("passage", "the page's address says it")
    return _unless_elsewhere("passage", page, edits)


def _unless_elsewhere(kind: Kind, page: JudgedPage, edits: Sequence[Edit]) -> Change | Discarded:
    """Return the changed page, unless another sentence has a value of the claim in any form."""
    edited = {page.sentence_at(edit.start) for edit in edits}
    others = [each for each in sentences(page.text) if each not in edited]
    values = _claim_values(page)
    for fact in (*page_facts(page.text, "number"), *page_facts(page.text, "date")):
        is_other = page.sentence_at(fact.start) not in edited and _is_about_claim(page, fact)
        if is_other and any(says(fact.value, value) for value in values):
            return Discarded(kind, "the page has a value of the claim elsewhere")
    rest = "\n".join(page.text[each.start : each.end] for each in others)
    for fact in claimed_facts(page):
        if says_otherwise(rest, page.claim, fact):
            return Discarded(kind, "the page has a value of the claim in another form")
    return apply_edits(kind, page, edits)


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
    claimed = facts_in(page.claim, "name")
    kinds = {word for name in claimed for word in _kind_words(page.claim, name)}
    names = facts_in(text, "name")
    if {name.value for name in claimed} <= {name.value for name in names}:
        return False
    return any(
        not content_words(name.text) <= page.claim_words and kinds & set(_kind_words(text, name))
        for name in names
    )


def _kind_words(text: str, name: Fact) -> list[str]:
    """Return the words that may say what a name is of: its last one, and the one behind it."""
    behind = first_content_word(text[name.end :])
    return list(filter(None, (*name.value.split()[1:][-1:], behind)))


def _is_about_claim(page: JudgedPage, fact: Fact) -> bool:
    """Tell whether a value stands among words of the claim, beside the value itself."""
    sentence = page.sentence_at(fact.start)
    if _is_of_sibling(page, page.text[sentence.start : sentence.end]):
        return False
    around = page.text[max(0, fact.start - _SUBJECT_CHARS) : fact.end + _SUBJECT_CHARS]
    words = {word for word in page.claim_words if not word[0].isdigit()}
    return len(words & content_words(around)) >= min(_SUBJECT_WORDS, len(words))
