"""Changes of a page: one that takes a claim's support away, or a control that leaves it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Literal

from mind2web2.plugins.probe.passages import (
    JudgedPage,
    Sentence,
    content_words,
    first_content_word,
    speaks_of,
)
from mind2web2.utils.facts import NUMBER_WORDS, Fact, FactKind, facts_in, facts_of_kind

ChangeKind = Literal["number", "date", "name", "negation", "comparison", "passage"]
ControlKind = Literal["reworded", "unrelated fact", "white space"]
Kind = ChangeKind | ControlKind
CHANGES: Sequence[ChangeKind] = (
    "number",
    "date",
    "name",
    "negation",
    "comparison",
    "passage",
)
CONTROLS: Sequence[ControlKind] = ("reworded", "unrelated fact", "white space")

# A value that a page has everywhere cannot be changed without changing other facts.
MAX_PLACES = 30
# An unrelated fact stands at least this far from the quotation.
_UNRELATED_CHARS = 200
# A value may say what the claim says if so many of the claim's words stand so near.
_SUBJECT_CHARS = 150
_SUBJECT_WORDS = 2
_NEARLY_ALL = 0.8


@dataclass(frozen=True, slots=True)
class Change:
    """A changed page.

    Args:
        before: the words that were changed, as the page had them.
        after: the words in their place.
        places: the changed passages, as places in the new text.
    """

    kind: Kind
    text: str
    before: str
    after: str
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Discarded:
    """A change that was not made, since the changed page might still support the claim."""

    kind: Kind
    reason: str


def change_page(page: JudgedPage, kind: Kind, random: Random) -> Change | Discarded | None:
    """Change all places of a page that support the claim; ``None`` if the kind does not apply to it."""
    return _MAKERS[kind](page, random)


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    new: str


def _apply_edits(kind: Kind, page: JudgedPage, edits: Iterable[_Edit]) -> Change:
    """Return the page with the edits, which do not overlap."""
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    ordered = sorted(edits, key=lambda edit: edit.start)
    last = length = 0
    for edit in ordered:
        unchanged = page.text[last : edit.start]
        pieces += [unchanged, edit.new]
        length += len(unchanged)
        places.append((length, length + len(edit.new)))
        length += len(edit.new)
        last = edit.end
    pieces.append(page.text[last:])
    first = ordered[0]
    return Change(
        kind,
        "".join(pieces),
        before=page.text[first.start : first.end],
        after=first.new,
        places=tuple(places),
    )


# Values: numbers, dates, names


@lru_cache(maxsize=48)
def _page_facts(text: str, kind: FactKind) -> tuple[Fact, ...]:
    return tuple(facts_of_kind(text, kind))


def _quoted_facts(page: JudgedPage, kind: FactKind) -> list[Fact]:
    """Return the claim's facts of a kind that the quoted sentences have as well."""
    claimed = facts_of_kind(page.claim, kind)
    if not claimed:
        return []
    quoted = "\n".join(page.text[each.start : each.end] for each in page.quoted)
    values = {fact.value for fact in facts_of_kind(quoted, kind)}
    return [fact for fact in claimed if any(_says(value, fact.value) for value in values)]


def _first_change(
    facts: list[Fact], change: Callable[[Fact], Change | Discarded], random: Random
) -> Change | Discarded | None:
    """Return the change of one of the facts; if each is discarded, the reason for the first."""
    random.shuffle(facts)
    discarded: Discarded | None = None
    for fact in facts:
        made = change(fact)
        if isinstance(made, Change):
            return made
        discarded = discarded or made
    return discarded


def _says(value: str, claimed: str) -> bool:
    """Tell whether a value says what a claim says: a date says its month and its year as well."""
    return value == claimed or value.startswith(f"{claimed}-")


_SHORT_NUMBER = 2
_BOUND_REACH = 25
# With these words a claim is true of many values.
_BOUND = re.compile(
    r"\b(?:at least|at most|more than|less than|fewer than|over|under|above(?! (?:the )?sea)|below|up to"
    r"|between|about|around|approximately|roughly|nearly|almost|minimum|maximum|exceed\w*|within|before"
    r"|after|since|until|by \d|by the end|no later|no earlier|older|newer|or more|or less|or fewer|earlier"
    r"|later)\b|[<>≥≤~≈]",
    re.IGNORECASE,
)


def _is_bound(claim: str, fact: Fact) -> bool:
    """Tell whether words beside a fact make the claim true of many values."""
    return (
        _BOUND.search(claim[max(0, fact.start - _BOUND_REACH) : fact.end + _BOUND_REACH])
        is not None
    )


def _change_number(page: JudgedPage, random: Random) -> Change | Discarded | None:
    facts = _quoted_facts(page, "number")
    return _first_change(facts, lambda fact: _changed_number(page, fact, random), random)


def _changed_number(page: JudgedPage, fact: Fact, random: Random) -> Change | Discarded:
    if _is_bound(page.claim, fact):
        return Discarded("number", "the claim is a bound, which another number may meet")
    # A digit or two in an address mean something else.
    if len(fact.text) > _SHORT_NUMBER and _is_in_address(page, fact.text):
        return Discarded("number", "the page's address has the number")
    on_page = _page_facts(page.text, "number")
    places = [each for each in on_page if each.value == fact.value]
    if len(places) > MAX_PLACES:
        return Discarded("number", "the page has the number everywhere")
    known = {each.value for each in (*on_page, *facts_in(page.claim))}
    new_value = _other_number(fact.value, known, random)
    edits = [_Edit(each.start, each.end, _write_like(each.text, new_value)) for each in places]
    return _unless_supported("number", page, edits, fact)


def _other_number(value: str, known: set[str], random: Random) -> str:
    """Return a value with another digit or of another magnitude that neither page nor claim has."""
    candidates = [value + "0"] if value.isdigit() and value != "0" else []
    for place, sign in enumerate(value):
        if not sign.isdigit():
            continue
        digits = [digit for digit in "123456789" if digit != sign]
        candidates += [value[:place] + digit + value[place + 1 :] for digit in digits]
    if ":" in value:
        candidates = [
            each
            for each in candidates
            if int(each.split(":")[0]) < 24 and int(each.split(":")[1]) < 60
        ]
    fresh = [each for each in candidates if each not in known]
    return random.choice(fresh or candidates)


_WORDS_OF_NUMBERS = {str(number): word for word, number in NUMBER_WORDS.items()}


def _write_like(written: str, value: str) -> str:
    """Write a number as another one is written: in words, or with the same mark between thousands."""
    if written.isalpha():
        word: str = _WORDS_OF_NUMBERS.get(value, value)
        return word.capitalize() if written[0].isupper() else word
    if ":" in value:
        return value
    whole, _, decimals = value.partition(".")
    marks = re.findall(r"[,'\u2019\u00a0\u202f ](?=\d{3})", written)
    if marks and not re.fullmatch(r"\d+,\d{1,2}", written):
        whole = f"{int(whole):,}".replace(",", marks[0])
    decimal_mark = "," if re.fullmatch(r"\d+,\d{1,2}", written) else "."
    return f"{whole}{decimal_mark}{decimals}" if decimals else whole


def _change_date(page: JudgedPage, random: Random) -> Change | Discarded | None:
    facts = _quoted_facts(page, "date")
    return _first_change(facts, lambda fact: _changed_date(page, fact, random), random)


def _changed_date(page: JudgedPage, fact: Fact, random: Random) -> Change | Discarded:
    if _is_bound(page.claim, fact):
        return Discarded("date", "the claim is a bound, which another date may meet")
    if _is_in_address(page, fact.text):
        return Discarded("date", "the page's address has the date")
    on_page = _page_facts(page.text, "date")
    places = [each for each in on_page if _has_date(each.value, fact.value)]
    if len(places) > MAX_PLACES:
        return Discarded("date", "the page has the date everywhere")
    known = {each.value for each in on_page}
    move = _date_move(fact.value, known, random)
    edits = [_Edit(each.start, each.end, _moved_date(each, move)) for each in places]
    return _unless_supported("date", page, edits, fact)


def _has_date(value: str, claimed: str) -> bool:
    """Tell whether a date on the page says what the claim says, or its day without the year."""
    is_day_alone = value.startswith("--") and claimed.endswith(value[1:])
    return is_day_alone or _says(value, claimed)


def _date_move(value: str, known: set[str], random: Random) -> tuple[int, int]:
    """Return by how many years and days a date is moved: years if it has no day."""
    if value.count("-") >= 2:
        day = int(value.rpartition("-")[2])
        days = [other - day for other in range(1, 29) if abs(other - day) > 1]
        return 0, random.choice(days)
    years = [
        move
        for move in (*range(-9, -1), *range(2, 10))
        if not any(str(int(value[:4]) + move) in each for each in known)
    ]
    return random.choice(years or [3]), 0


def _moved_date(fact: Fact, move: tuple[int, int]) -> str:
    """Return a date as the page writes it, with another year or another day."""
    years, days = move
    if years:
        old_year = fact.value[:4]
        return fact.text.replace(old_year, str(int(old_year) + years), 1)
    old_day = int(fact.value.rpartition("-")[2])
    day_of_month = re.compile(rf"(?<!\d)0?{old_day}(?!\d)(?:st|nd|rd|th)?")
    matches = list(day_of_month.finditer(fact.text))
    # In 2024-03-03 the day is last; in 3 March 2024 it is the only one.
    match = matches[-1] if fact.text[:4].isdigit() else matches[0]
    width = len(match[0].rstrip("stndrh"))
    return f"{fact.text[: match.start()]}{old_day + days:0{width}}{fact.text[match.end() :]}"


# Names for pages that have no other name of the same length.
_SPARE_NAMES: Mapping[int, Sequence[str]] = {
    1: ("Velmora", "Tarnholt", "Quiberon", "Ostrava"),
    2: ("Marlen Tarnholt", "Velmora Hall", "Ostrava Quay"),
    3: ("Old Tarnholt House", "Velmora Arts Centre"),
}


def _change_name(page: JudgedPage, random: Random) -> Change | Discarded | None:
    facts = _quoted_facts(page, "name")
    return _first_change(facts, lambda fact: _changed_name(page, fact, random), random)


def _changed_name(page: JudgedPage, fact: Fact, random: Random) -> Change | Discarded:
    words = [word for word in fact.text.split() if word[0].isupper() and len(word) > 2]
    own_words = [word for word in words if not _is_in_other_name(page, word, fact.value)]
    if not own_words:
        return Discarded("name", "other names on the page have each word of the name")
    if any(_is_in_address(page, word) for word in own_words):
        return Discarded("name", "the page's address has the name")
    new_words = _other_name(page, words, random).split()
    replaced = dict(zip(words, new_words, strict=False))
    alone = {word: replaced.get(word, new_words[-1]) for word in own_words}
    edits = _name_edits(page.text, {fact.text: " ".join(new_words)} | alone)
    if len(edits) > MAX_PLACES:
        return Discarded("name", "the page has the name everywhere")
    change = _apply_edits("name", page, edits)
    rest = _without(change)
    if any(word.casefold() in rest for word in own_words):
        return Discarded("name", "the page still has a part of the name")
    return change


def _is_in_other_name(page: JudgedPage, word: str, name: str) -> bool:
    return any(
        word.casefold() in fact.value.split() and name not in fact.value
        for fact in _page_facts(page.text, "name")
        if fact.value != word.casefold()
    )


def _other_name(page: JudgedPage, words: Sequence[str], random: Random) -> str:
    """Return another name from the page, or an invented one, that shares no word with the claim."""
    candidates = {
        fact.text
        for fact in _page_facts(page.text, "name")
        if len(fact.text.split()) == len(words)
        and fact.text.istitle()
        and not content_words(fact.text) & page.claim_words
    }
    spare = _SPARE_NAMES.get(len(words), _SPARE_NAMES[3])
    return random.choice(sorted(candidates) or spare)


def _name_edits(text: str, replacements: Mapping[str, str]) -> list[_Edit]:
    """Replace the whole name, and each of its own words where it stands without the others."""
    forms = [re.escape(words).replace("\\ ", r"\s+") for words in replacements]
    pattern = re.compile("|".join(rf"(\b{form}\b)" for form in forms), re.IGNORECASE)
    new_names = list(replacements.values())
    return [
        _Edit(*match.span(), new_names[(match.lastindex or 1) - 1])
        for match in pattern.finditer(text)
    ]


def _is_in_address(page: JudgedPage, words: str) -> bool:
    return words.casefold() in page.address.casefold()


def _unless_supported(
    kind: Kind, page: JudgedPage, edits: Sequence[_Edit], fact: Fact
) -> Change | Discarded:
    """Return the changed page, unless it has the fact's value somewhere else."""
    change = _apply_edits(kind, page, edits)
    if any(each.value == fact.value for each in facts_in(_near(change))):
        return Discarded(kind, "the changed page still has the value")
    return change


def _near(change: Change) -> str:
    """Return what surrounds the changed places; elsewhere no place has the value."""
    return "\n".join(change.text[max(0, start - 40) : end + 40] for start, end in change.places)


def _without(change: Change) -> str:
    """Return the changed text without the changed passages, in lower case."""
    pieces, last = [], 0
    for start, end in change.places:
        pieces.append(change.text[last:start])
        last = end
    return "".join([*pieces, change.text[last:]]).casefold()


# Statements: negation, comparison, removal

_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|does|do|did|must|(?-i:may)|should)\b"
    r"( not\b|n[\u2019']t\b)?",
    re.IGNORECASE,
)


def _change_negation(page: JudgedPage, random: Random) -> Change | Discarded | None:  # noqa: ARG001 (each sentence has one form)
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
    return _apply_edits("negation", page, edits)


def _negation(page: JudgedPage, sentence: Sentence) -> _Edit | None:
    """Return the edit that negates what a sentence says about the claim, ``None`` if it is not clear how.

    The one auxiliary verb stands before a word of the claim, unlike that in "holds 9 litres when it is full",
    and before the claimed fact, unlike that in "born in 1954, is a chemist".
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

    A heading does not, nor does a sentence about a sibling. Others have a number or date of the claim. If
    the claim has none, they have nearly all its words.
    """
    text = page.text[sentence.start : sentence.end]
    if text.startswith("#") or _is_of_sibling(page, text):
        return False
    values = _claim_values(page)
    if not values:
        return _has_nearly_all_words(page, text)
    return any(fact.value in values for fact in facts_in(text))


def _claim_values(page: JudgedPage) -> set[str]:
    facts = [*_quoted_facts(page, "number"), *_quoted_facts(page, "date")]
    return {fact.value for fact in facts}


def _negate(match: re.Match[str]) -> _Edit:
    verb, negation = match[1], match[2]
    if negation:
        return _Edit(*match.span(), verb)
    return _Edit(*match.span(), "cannot" if verb.lower() == "can" else f"{verb} not")


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


def _change_comparison(page: JudgedPage, random: Random) -> Change | Discarded | None:
    """Turn a comparison of the claim around in each sentence that has it with the claim's other words."""
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
        edits += [_Edit(*each.span(), _in_case_of(each[0], _OPPOSITES[word])) for each in matches]
    others = [each for each in page.supporting if not page.is_quoted(each)]
    if any(word not in _sentence(page, each) for each in others):
        return Discarded("comparison", "another sentence says it in other words")
    return _apply_edits("comparison", page, edits)


def _is_beside_claim(page: JudgedPage, sentence: Sentence, word: re.Match[str]) -> bool:
    """Tell whether the word before or behind a comparison is one of the claim."""
    before = page.text[sentence.start : word.start()].split()[-1:]
    behind = first_content_word(page.text[word.end() : sentence.end])
    return behind in page.claim_words or bool(content_words("".join(before)) & page.claim_words)


def _sentence(page: JudgedPage, sentence: Sentence) -> str:
    return page.text[sentence.start : sentence.end].lower()


def _in_case_of(written: str, word: str) -> str:
    return word.capitalize() if written[0].isupper() else word


def _remove_passage(page: JudgedPage, random: Random) -> Change | Discarded | None:  # noqa: ARG001 (nothing to choose)
    """Remove the quoted sentences and all others that speak about the claim."""
    edits = [_Edit(each.start, each.end, "") for each in page.supporting]
    if not edits:
        return None
    change = _apply_edits("passage", page, edits)
    values = _claim_values(page)
    facts = (*_page_facts(page.text, "number"), *_page_facts(page.text, "date"))
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
    """Tell whether a sentence is about a sibling of the claim's subject, such as another festival."""
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


# Controls


def _reword(page: JudgedPage, random: Random) -> Change | None:
    """Introduce the quoted sentence by words that change nothing."""
    quoted = page.quoted
    if not quoted:
        return None
    opening = random.choice(("Note: ", "For the record: ", "In short: "))
    start = quoted[0].start
    return _apply_edits("reworded", page, [_Edit(start, start, opening)])


def _change_unrelated(page: JudgedPage, random: Random) -> Change | None:
    """Change one number in a sentence that shares no content word with the claim."""
    claim_values = {fact.value for fact in facts_in(page.claim)}
    facts = [
        fact
        for fact in _page_facts(page.text, "number")
        if fact.value not in claim_values
        and (fact.end < page.start - _UNRELATED_CHARS or fact.start > page.end + _UNRELATED_CHARS)
    ]
    random.shuffle(facts)
    for fact in facts[:MAX_PLACES]:
        around = page.text[max(0, fact.start - 300) : fact.end + 300]
        if content_words(around) & page.claim_words:
            continue
        new_value = _other_number(fact.value, claim_values, random)
        return _apply_edits(
            "unrelated fact",
            page,
            [_Edit(fact.start, fact.end, _write_like(fact.text, new_value))],
        )
    return None


def _change_white_space(page: JudgedPage, random: Random) -> Change | None:  # noqa: ARG001 (nothing to choose)
    """Put an empty line before and after the quoted sentences."""
    quoted = page.quoted
    if not quoted:
        return None
    start, end = quoted[0].start, quoted[-1].end
    return _apply_edits("white space", page, [_Edit(start, start, "\n\n"), _Edit(end, end, "\n\n")])


_Maker = Callable[[JudgedPage, Random], Change | Discarded | None]
_MAKERS: Mapping[Kind, _Maker] = {
    "number": _change_number,
    "date": _change_date,
    "name": _change_name,
    "negation": _change_negation,
    "comparison": _change_comparison,
    "passage": _remove_passage,
    "reworded": _reword,
    "unrelated fact": _change_unrelated,
    "white space": _change_white_space,
}
