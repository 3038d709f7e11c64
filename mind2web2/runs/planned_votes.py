"""How many votes a stored result would take by another rule of votes, or by two judges; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.voting import second_judge_decides
from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.verdicts import (
    Evidence,
    Vote,
    VotedBy,
)
from mind2web2.rubric.vote_rule import FIRST_VOTES, VoteRule

# With two judges, the share of the claims that the strong one decides, where no result tells.
SHARE_OF_SECOND = 0.2


class PlannedVotes(NamedTuple):
    """Votes on the claims of a result.

    Args:
        stored: those that the result has.
        own: those that a judge would cast.
        first: those of the judge asked before it.
    """

    stored: int = 0
    own: int = 0
    first: int = 0


def planned_votes(result: ResultFile, judge: JudgeSpec) -> PlannedVotes:
    """Return the votes of a result, and those that a judge, or two, would cast by their rules.

    The votes that were asked for are taken as they are; two stand for those that were not.
    """
    provenance = result.provenance
    known_rule = provenance is not None and provenance.judge.is_by_known_rules
    made_by = VoteRule.parsed(provenance.judge.votes) if provenance and known_rule else VoteRule()
    # So many votes by the rule, or by the script: the evidence does not tell.
    trials = made_by.trials()
    stored = own = first = 0
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
            if judge.preceding is None:
                own += votes
                continue
            first += FIRST_VOTES
            # The first judge's votes may be unknown; then the other judge's are the best guess.
            known = (voted.first_votes or voted.votes)[:FIRST_VOTES]
            if second_judge_decides(known, leaf.critical):
                own += votes
    return PlannedVotes(stored, own, first)


def voted_sources(evidence: Evidence) -> list[VotedBy]:
    """Return what was voted on, the answer or each page, in the order asked."""
    sources: list[VotedBy] = [evidence, *evidence.pages]
    return [voted for voted in sources if voted.votes]


def _votes_by(rule: VoteRule, votes: Sequence[Vote]) -> int:
    return min(rule.trials(), max(len(votes), FIRST_VOTES))
