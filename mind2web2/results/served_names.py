"""The models that judges' servers reported; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mind2web2.results.scored_answer import ScoredAnswer


def served_names(answers: Iterable[ScoredAnswer]) -> Counter[str]:
    """Return how many answers the judge judged under each name that its server reported."""
    return Counter(name for answer in answers for name in answer.facts.served)
