"""The facts of a page, and those of a claim that the quoted sentences have as well."""

from __future__ import annotations

from functools import lru_cache

from mind2web2.plugin import Fact, FactKind, facts_of_kind
from mind2web2_trust.probe.passages import JudgedPage


@lru_cache(maxsize=48)
def page_facts(text: str, kind: FactKind) -> tuple[Fact, ...]:
    """Return the facts of a kind on a page."""
    return tuple(facts_of_kind(text, kind))


def quoted_facts(page: JudgedPage, kind: FactKind) -> list[Fact]:
    """Return the claim's facts of a kind that the quoted sentences have as well."""
    claimed = facts_of_kind(page.claim, kind)
    if not claimed:
        return []
    quoted = "\n".join(page.text[each.start : each.end] for each in page.quoted)
    values = {fact.value for fact in facts_of_kind(quoted, kind)}
    return [fact for fact in claimed if any(says(value, fact.value) for value in values)]


def claimed_facts(page: JudgedPage) -> list[Fact]:
    """Return the claim's numbers and dates."""
    return [*facts_of_kind(page.claim, "number"), *facts_of_kind(page.claim, "date")]


def says(value: str, claimed: str) -> bool:
    """Tell whether a value says what a claim says: a date says its month and its year as well."""
    return value == claimed or value.startswith(f"{claimed}-")
