"""How many votes a stored result would take by another rule of votes, or by two judges; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mind2web2.judge.spec import JudgeSpec
from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.verdicts import (
    DEFAULT_TRIALS,
    FIRST_VOTES,
    Evidence,
    Vote,
    VotedBy,
    second_judge_decides,
)
from mind2web2.rubric.vote_rule import ALWAYS

# With two judges, the share of the claims that the strong one decides, where no result tells.
SHARE_OF_SECOND = 0.2


def likely_votes(rule: str, num_trials: int) -> int:
    """Return the votes on a claim by a rule, if they agree.

    Args:
        num_trials: as the script gives it.
    """
    trials = _trials(rule) if num_trials == DEFAULT_TRIALS else num_trials
    return min(FIRST_VOTES, trials)


def _trials(rule: str) -> int:
    """Return the most votes by a rule, in place of the script's default number."""
    return int(rule) if rule.isdecimal() else DEFAULT_TRIALS


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
    made_by = ALWAYS
    if result.provenance is not None:
        made_by = result.provenance.judge.votes
    # So many votes by the rule, or by the script: the evidence does not tell.
    trials = _trials(made_by)
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
            # Those of whichever judge cast them are the best that is known of the first one's.
            known = (voted.first_votes or voted.votes)[:FIRST_VOTES]
            if second_judge_decides(known, leaf.critical):
                own += votes
    return PlannedVotes(stored, own, first)


def voted_sources(evidence: Evidence) -> list[VotedBy]:
    """Return what was voted on, the answer or each page, in the order asked."""
    sources: list[VotedBy] = [evidence, *evidence.pages]
    return [voted for voted in sources if voted.votes]


def _votes_by(rule: str, votes: Sequence[Vote]) -> int:
    most = _trials(rule)
    return min(most, max(len(votes), FIRST_VOTES))
