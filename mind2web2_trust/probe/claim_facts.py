"""The facts of a page, and those of a claim that the quoted sentences have as well."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from mind2web2.plugin import (
    Fact,
    facts_in,
)
from mind2web2_trust.probe.passages import JudgedPage

ValueKind = Literal["number", "date", "name"]


@lru_cache(maxsize=48)
def page_facts(text: str, kind: ValueKind) -> tuple[Fact, ...]:
    """Return the facts of a kind on a page."""
    return tuple(facts_in(text, kind))


def quoted_facts(page: JudgedPage, kind: ValueKind) -> list[Fact]:
    """Return the claim's facts of a kind that the quoted sentences have as well."""
    claimed = facts_in(page.claim, kind)
    if not claimed:
        return []
    quoted = "\n".join(page.text[each.start : each.end] for each in page.quoted)
    values = {fact.value for fact in facts_in(quoted, kind)}
    return [fact for fact in claimed if any(says(value, fact.value) for value in values)]


def claimed_facts(page: JudgedPage) -> list[Fact]:
    """Return the claim's numbers and dates."""
    return [*facts_in(page.claim, "number"), *facts_in(page.claim, "date")]


def says(value: str, claimed: str) -> bool:
    """Tell whether a value says what a claim says: a date says its month and its year as well."""
    return value == claimed or value.startswith(f"{claimed}-")
