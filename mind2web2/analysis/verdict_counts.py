"""How many verdicts behind an agent's scores rest on something doubtful; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import get_args

from mind2web2.results.agent_summary import ClaimCounts, VerdictCounts
from mind2web2.results.claim_facts import QUOTE_MATCHES, ClaimFacts, Reservation
from mind2web2.results.scored_answer import ResultFacts, ScoredAnswer

_RESERVATIONS: tuple[Reservation, ...] = get_args(Reservation)


def verdict_counts(answers: Sequence[ScoredAnswer]) -> VerdictCounts:
    """Return how many verdicts behind these answers' scores are doubtful.

    The counts are as ``summary.json`` has them.
    """
    tasks: dict[str, list[ClaimFacts]] = {}
    extractions: Counter[Reservation] = Counter()
    for answer in answers:
        tasks.setdefault(answer.task_id, []).extend(answer.facts.claims)
        for reservations in answer.facts.extractions:
            extractions.update(reservations)

    def names(applies: Callable[[ResultFacts], bool]) -> tuple[str, ...]:
        return tuple(f"{one.task_id}/{one.answer_name}" for one in answers if applies(one.facts))

    counts = _claim_counts([claim for claims in tasks.values() for claim in claims])
    return VerdictCounts(
        claims=counts.claims,
        reservations=counts.reservations,
        voted=counts.voted,
        split=counts.split,
        quotes=counts.quotes,
        tasks={task: _claim_counts(claims) for task, claims in tasks.items()},
        extractions={kind: extractions[kind] for kind in _RESERVATIONS},
        in_doubt=names(lambda facts: facts.in_doubt),
        flagged_answers=names(lambda facts: facts.is_flagged),
        treeless=names(lambda facts: facts.is_treeless),
        off_tree=names(lambda facts: facts.is_off_tree),
        unexplained=names(lambda facts: not facts.is_explained and not facts.is_treeless),
    )


def _claim_counts(claims: Sequence[ClaimFacts]) -> ClaimCounts:
    reservations: Counter[Reservation] = Counter()
    quotes = Counter(match for claim in claims for match in claim.quotes)
    for claim in claims:
        reservations.update(claim.reservations)
    return ClaimCounts(
        claims=len(claims),
        reservations={kind: reservations[kind] for kind in _RESERVATIONS},
        voted=sum(claim.is_voted for claim in claims),
        split=sum(claim.is_split for claim in claims),
        quotes={match: quotes[match] for match in QUOTE_MATCHES},
    )
