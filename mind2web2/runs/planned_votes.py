"""How many votes a stored result would take by another rule of ``--votes``; pure."""

from __future__ import annotations

from collections.abc import Sequence

from mind2web2.rubric.verdicts import (
    DEFAULT_TRIALS,
    Evidence,
    PageShown,
    Vote,
    VoteRule,
    doubts_of,
)
from mind2web2.runs.result_file import ResultFile

# Votes on a claim where no result tells: with `doubt`, half of the claims are gates or in doubt.
GUESSED_VOTES: dict[VoteRule, float] = {"always": 2, "doubt": 1.5, "1": 1}
# Of the benchmark's rule, which asks for two at first.
_FIRST_VOTES = 2


def other_votes(result: ResultFile, rule: VoteRule) -> int:
    """Return how many votes a rule takes beyond those that the result has; negative for fewer.

    The votes that were asked for are taken as they are; two stand for those that were not.
    """
    made_by: VoteRule = "always"
    if result.provenance is not None:
        made_by = result.provenance.judge.votes
    if made_by == rule:
        return 0
    # One vote by the rule `1`, or by the script: the evidence does not tell.
    trials = 1 if made_by == "1" else DEFAULT_TRIALS
    return sum(
        _votes_by(rule, votes, page, is_gate=leaf.critical) - len(votes)
        for leaf in result.leaves()
        if (evidence := leaf.evidence) is not None and evidence.num_trials == trials
        for page, votes in votes_by_page(evidence)
    )


def votes_by_page(
    evidence: Evidence,
) -> list[tuple[PageShown | None, Sequence[Vote]]]:
    """Return the votes on each page in the order asked, or those on the answer."""
    groups: list[tuple[PageShown | None, Sequence[Vote]]] = [(None, evidence.votes)]
    groups += [(check.page, check.votes) for check in evidence.pages]
    return [(page, votes) for page, votes in groups if votes]


def _votes_by(
    rule: VoteRule, votes: Sequence[Vote], page: PageShown | None, *, is_gate: bool
) -> int:
    is_settled = rule == "doubt" and not is_gate and not doubts_of(votes[0], page)
    if rule == "1" or is_settled:
        return 1
    return max(len(votes), _FIRST_VOTES)
