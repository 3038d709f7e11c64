"""Changes that leave a claim's support: the verdict must stay."""

from __future__ import annotations

from random import Random

from mind2web2.plugins.probe.claim_facts import page_facts
from mind2web2.plugins.probe.edits import Change, Edit, apply_edits
from mind2web2.plugins.probe.passages import JudgedPage, content_words
from mind2web2.plugins.probe.value_changes import other_number, write_like
from mind2web2.utils.facts import facts_in

# An unrelated fact stands at least this far from the quotation.
_UNRELATED_CHARS = 200
_MAX_TRIES = 30


def reword(page: JudgedPage, random: Random) -> Change | None:
    """Introduce the quoted sentence by words that change nothing."""
    quoted = page.quoted
    if not quoted:
        return None
    opening = random.choice(("Note: ", "For the record: ", "In short: "))
    start = quoted[0].start
    return apply_edits("reworded", page, [Edit(start, start, opening)])


def change_unrelated(page: JudgedPage, random: Random) -> Change | None:
    """Change one number in a sentence that shares no content word with the claim."""
    claim_values = {fact.value for fact in facts_in(page.claim)}
    facts = [
        fact
        for fact in page_facts(page.text, "number")
        if fact.value not in claim_values
        and (fact.end < page.start - _UNRELATED_CHARS or fact.start > page.end + _UNRELATED_CHARS)
    ]
    random.shuffle(facts)
    for fact in facts[:_MAX_TRIES]:
        around = page.text[max(0, fact.start - 300) : fact.end + 300]
        if content_words(around) & page.claim_words:
            continue
        new_value = other_number(fact.value, claim_values, random)
        return apply_edits(
            "unrelated fact",
            page,
            [Edit(fact.start, fact.end, write_like(fact.text, new_value))],
        )
    return None


def change_white_space(page: JudgedPage, random: Random) -> Change | None:  # noqa: ARG001 (nothing to choose)
    """Put an empty line before and after the quoted sentences."""
    quoted = page.quoted
    if not quoted:
        return None
    start, end = quoted[0].start, quoted[-1].end
    return apply_edits("white space", page, [Edit(start, start, "\n\n"), Edit(end, end, "\n\n")])
