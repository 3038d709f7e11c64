"""Another number, date or name in place of the claim's, at all places of a page that have it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random

from mind2web2.plugin import NUMBER_WORDS, Fact, facts_in
from mind2web2_trust.probe.claim_facts import page_facts, quoted_facts, says
from mind2web2_trust.probe.edits import Change, Discarded, Edit, apply_edits
from mind2web2_trust.probe.other_forms import says_otherwise
from mind2web2_trust.probe.passages import JudgedPage

# A value that a page has everywhere cannot be changed without changing other facts.
MAX_PLACES = 30


def _first_change(
    facts: list[Fact], change: Callable[[Fact], Change | Discarded], random: Random
) -> Change | Discarded | None:
    """Return the change of one of the facts; if each is discarded, the reason for the first."""
    random.shuffle(facts)
    # A number in words is rarely what a claim is about: "two adults pay 20.00 crowns".
    facts.sort(key=lambda fact: fact.text.isalpha())
    discarded: Discarded | None = None
    for fact in facts:
        made = change(fact)
        if isinstance(made, Change):
            return made
        discarded = discarded or made
    return discarded


_SHORT_NUMBER = 2
_BOUND_REACH = 25
# With these words a claim is true of many values.
_BOUND = re.compile(
    r"\b(?:at least|at most|more than|less than|fewer than|over|under|above(?! (?:the "
    r")?sea)|below|up to"
    r"|between|about|around|approximately|roughly|nearly|almost|minimum|maximum|exceed\w*|within|before"
    r"|after|since|until|by \d|by the end|no later|no earlier|older|newer|or more|or less|or "
    r"fewer|earlier"
    r"|later|century|decade)\b|[<>≥≤~≈]",
    re.IGNORECASE,
)


def _is_bound(claim: str, fact: Fact) -> bool:
    """Tell whether words beside a fact make the claim true of many values."""
    return (
        _BOUND.search(claim[max(0, fact.start - _BOUND_REACH) : fact.end + _BOUND_REACH])
        is not None
    )


def change_number(page: JudgedPage, random: Random) -> Change | Discarded | None:
    """Put another number in place of one of the claim's."""
    facts = quoted_facts(page, "number")
    return _first_change(facts, lambda fact: _changed_number(page, fact, random), random)


def _changed_number(page: JudgedPage, fact: Fact, random: Random) -> Change | Discarded:
    if _is_bound(page.claim, fact):
        return Discarded("number", "the claim is a bound, which another number may meet")
    # A digit or two in an address mean something else.
    if len(fact.text) > _SHORT_NUMBER and _is_in_address(page, fact.text):
        return Discarded("number", "the page's address has the number")
    on_page = page_facts(page.text, "number")
    places = [each for each in on_page if each.value == fact.value]
    if len(places) > MAX_PLACES:
        return Discarded("number", "the page has the number everywhere")
    known = {each.value for each in (*on_page, *facts_in(page.claim))}
    new_value = other_number(fact.value, known, random)
    if new_value is None:
        return Discarded("number", "the page has each number that is like it")
    edits = [Edit(each.start, each.end, write_like(each.text, new_value)) for each in places]
    change = apply_edits("number", page, edits)
    if says_otherwise(change.text, page.claim, fact):
        return Discarded("number", "the changed page has the value in another form")
    return change


def other_number(value: str, known: set[str], random: Random) -> str | None:
    """Return a value with another digit that is not known, if any."""
    # A time of day is one with any last digit.
    places = range(len(value) - 1 if ":" in value else 0, len(value))
    candidates = [
        value[:place] + digit + value[place + 1 :]
        for place in places
        for digit in "123456789"
        if value[place].isdigit()
    ]
    fresh = [each for each in candidates if each not in known]
    return random.choice(fresh) if fresh else None


_WORDS_OF_NUMBERS = {str(number): word for word, number in NUMBER_WORDS.items()}


def write_like(written: str, value: str) -> str:
    """Write a number as another one is written: in words, or with its mark between thousands."""
    if written.isalpha():
        word: str = _WORDS_OF_NUMBERS.get(value, value)
        return word.capitalize() if written[0].isupper() else word
    if ":" in value:
        return value
    whole, _, decimals = value.partition(".")
    marks = re.findall(r"[,'\u2019\u00a0\u202f ](?=\d{3})", written)
    if marks:
        whole = f"{int(whole):,}".replace(",", marks[0])
    decimal_mark = "," if re.search(r"\d,\d{1,2}$", written) else "."
    return f"{whole}{decimal_mark}{decimals}" if decimals else whole


def change_date(page: JudgedPage, random: Random) -> Change | Discarded | None:
    """Move one of the claim's dates."""
    facts = quoted_facts(page, "date")
    return _first_change(facts, lambda fact: _changed_date(page, fact, random), random)


def _changed_date(page: JudgedPage, fact: Fact, random: Random) -> Change | Discarded:
    if _is_bound(page.claim, fact):
        return Discarded("date", "the claim is a bound, which another date may meet")
    if _is_in_address(page, fact.text):
        return Discarded("date", "the page's address has the date")
    on_page = page_facts(page.text, "date")
    places = [each for each in on_page if _has_date(each.value, fact.value)]
    if len(places) > MAX_PLACES:
        return Discarded("date", "the page has the date everywhere")
    known = {each.value for each in on_page}
    move = _date_move(fact.value, known, random)
    if move is None:
        return Discarded("date", "the page has the dates beside it")
    edits = [Edit(each.start, each.end, _moved_date(each, move)) for each in places]
    change = apply_edits("date", page, edits)
    is_left = any(each.value == fact.value for each in page_facts(change.text, "date"))
    if is_left or says_otherwise(change.text, page.claim, fact):
        return Discarded("date", "the changed page has the date in another form")
    return change


def _has_date(value: str, claimed: str) -> bool:
    """Tell whether a date on the page says what the claim says, or its day without the year."""
    is_day_alone = value.startswith("--") and claimed.endswith(value[1:])
    return is_day_alone or says(value, claimed)


def _date_move(value: str, known: set[str], random: Random) -> tuple[int, int] | None:
    """Return by how many years and days a date is moved, to one that the page does not have.

    Years if it has no day.
    """
    if value.count("-") >= 2:
        month, _, day = value.rpartition("-")
        days = [
            other - int(day)
            for other in range(1, 29)
            if abs(other - int(day)) > 1 and f"{month}-{other:02}" not in known
        ]
        return (0, random.choice(days)) if days else None
    years = [
        move
        for move in (*range(-9, -1), *range(2, 10))
        if not any(str(int(value[:4]) + move) in each for each in known)
    ]
    return (random.choice(years), 0) if years else None


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


# A currency or another unit before a number, or a day of the week: no name.
_NO_NAME = re.compile(r"[A-Z]{2,4}\s?\d|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b")
_GERMAN = re.compile(r"\b(?:der|die|das|und|ist|ein|eine|wurde|mit|von)\b")
_ENGLISH = re.compile(r"\b(?:the|and|of|is|was|with|in|for|to)\b", re.IGNORECASE)
# Names for pages that have no other name of the same length.
_SPARE_NAMES: Mapping[int, Sequence[str]] = {
    1: ("Velmora", "Tarnholt", "Quiberon", "Ostrava"),
    2: ("Marlen Tarnholt", "Velmora Hall", "Ostrava Quay"),
    3: ("Old Tarnholt House", "Velmora Arts Centre"),
}


def change_name(page: JudgedPage, random: Random) -> Change | Discarded | None:
    """Put another name in place of one of the claim's."""
    if len(_GERMAN.findall(page.text)) > len(_ENGLISH.findall(page.text)):
        return Discarded("name", "in the page's language, each noun is written like a name")
    facts = [
        fact for fact in quoted_facts(page, "name") if not _NO_NAME.match(page.claim, fact.start)
    ]
    return _first_change(facts, lambda fact: _changed_name(page, fact, random), random)


def _changed_name(page: JudgedPage, fact: Fact, random: Random) -> Change | Discarded:
    words = [word for word in fact.text.split() if word[0].isupper() and len(word) > 2]
    own_words = [word for word in words if not _is_in_other_name(page, word, fact.value)]
    if not own_words or any(_is_in_address(page, word) for word in own_words):
        return Discarded("name", "other names on the page, or its address, have the name's words")
    new_name = random.choice(_SPARE_NAMES.get(len(words), _SPARE_NAMES[3]))
    new_words = new_name.split()
    replaced = dict(zip(words, new_words, strict=False))
    alone = {word: replaced.get(word, new_words[-1]) for word in own_words}
    edits = _name_edits(page.text, {fact.text: new_name} | alone)
    if len(edits) > MAX_PLACES:
        return Discarded("name", "the page has the name everywhere")
    change = apply_edits("name", page, edits)
    rest = _without(change)
    if any(word.casefold() in rest for word in (*own_words, new_name)):
        return Discarded("name", "the page has the new name, or a part of the old one")
    return change


def _is_in_other_name(page: JudgedPage, word: str, name: str) -> bool:
    return any(
        word.casefold() in fact.value.split() and name not in fact.value
        for fact in page_facts(page.text, "name")
        if fact.value != word.casefold()
    )


def _name_edits(text: str, replacements: Mapping[str, str]) -> list[Edit]:
    """Replace the whole name, and each of its own words where it stands without the others."""
    forms = [re.escape(words).replace("\\ ", r"\s+") for words in replacements]
    pattern = re.compile("|".join(rf"(\b{form}\b)" for form in forms), re.IGNORECASE)
    new_names = list(replacements.values())
    return [
        Edit(*match.span(), new_names[(match.lastindex or 1) - 1])
        for match in pattern.finditer(text)
    ]


def _is_in_address(page: JudgedPage, words: str) -> bool:
    return words.casefold() in page.address.casefold()


def _without(change: Change) -> str:
    """Return the changed text without the changed passages, in lower case."""
    pieces, last = [], 0
    for start, end in change.places:
        pieces.append(change.text[last:start])
        last = end
    return "".join([*pieces, change.text[last:]]).casefold()
