"""How many votes a stored result would take by another rule of votes, or by several judges.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mind2web2.judge.spec import JudgeSpec
from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.verdicts import (
    Evidence,
    Vote,
    VotedBy,
)
from mind2web2.rubric.vote_rule import FIRST_VOTES, VoteRule


class PlannedVotes(NamedTuple):
    """Votes on the claims of a result.

    Args:
        stored: those that the result has.
        by_judge: those that each of the run's judges would cast, the one that decides last.
    """

    stored: int
    by_judge: tuple[float, ...]


def planned_votes(result: ResultFile, judge: JudgeSpec) -> PlannedVotes:
    """Return the votes of a result, and those that the judges of a run would cast by their rules.

    The votes that were asked for are taken as they are; two stand for those that were not.
    """
    provenance = result.provenance
    made_by = (provenance and provenance.judge.vote_rule) or VoteRule()
    # So many votes by the rule, or by the script: the evidence does not tell.
    trials = made_by.trials()
    stored, by_judge = 0, [0.0] * len(judge.judges)
    for leaf in result.leaves():
        evidence = leaf.evidence
        if evidence is None:
            continue
        for voted in voted_sources(evidence):
            stored += len(voted.votes) + len(voted.first_votes)
            follows = evidence.num_trials == trials and made_by != judge.vote_rule
            votes = len(voted.votes)
            if follows:
                votes = _votes_by(judge.vote_rule, voted.votes)
            # The first judge's votes may be unknown; then the other judge's are the best guess.
            known = voted.first_votes or voted.votes
            expected = judge.expected_votes(votes, known, is_gate=leaf.critical)
            by_judge = [sum(pair) for pair in zip(by_judge, expected, strict=True)]
    return PlannedVotes(stored, tuple(by_judge))


def voted_sources(evidence: Evidence) -> list[VotedBy]:
    """Return what was voted on, the answer or each page, in the order asked."""
    sources: list[VotedBy] = [evidence, *evidence.pages]
    return [voted for voted in sources if voted.votes]


def _votes_by(rule: VoteRule, votes: Sequence[Vote]) -> int:
    return min(rule.trials(), max(len(votes), FIRST_VOTES))
