"""How many votes a stored result would take by another rule of votes, or by two judges; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mind2web2.judge.settings import JudgeSettings
from mind2web2.rubric.verdicts import (
    DEFAULT_TRIALS,
    FIRST_VOTES,
    DoubtLevel,
    Evidence,
    PageCheck,
    PageShown,
    Vote,
    VotedBy,
    VoteRule,
    doubts_of,
    first_judge_doubts,
    first_judge_votes,
)
from mind2web2.runs.result_file import ResultFile

# Votes on a claim where no result tells: with `doubt`, half of the claims are gates or in doubt.
GUESSED_VOTES: dict[VoteRule, float] = {"always": 2, "doubt": 1.5, "1": 1}
# With two judges, the share of the claims that the strong one decides, where no result tells.
GUESSED_DOUBT: dict[DoubtLevel, float] = {"gates": 0.6, "signs": 0.2, "split": 0.1}


class PlannedVotes(NamedTuple):
    """Votes on the claims of a result.

    Args:
        stored: those that the result has.
        own: those that a judge would cast.
        first: those of the judge asked before it.
        sources: the pages and answers that claims were voted on with.
    """

    stored: int = 0
    own: int = 0
    first: int = 0
    sources: int = 0


def planned_votes(result: ResultFile, judge: JudgeSettings) -> PlannedVotes:
    """Return the votes of a result, and those that a judge, or two, would cast by their rules.

    The votes that were asked for are taken as they are; two stand for those that were not.
    """
    made_by: VoteRule = "always"
    if result.provenance is not None:
        made_by = result.provenance.judge.votes
    # One vote by the rule `1`, or by the script: the evidence does not tell.
    trials = 1 if made_by == "1" else DEFAULT_TRIALS
    stored = own = first = sources = 0
    asked_together: set[str] = set()
    for leaf in result.leaves():
        evidence = leaf.evidence
        if evidence is None:
            continue
        for voted, page in voted_sources(evidence):
            sources += 1
            stored += len(voted.votes) + len(voted.first_votes)
            follows = evidence.num_trials == trials and made_by != judge.votes
            is_gate = leaf.critical
            votes = len(voted.votes)
            if follows:
                votes = _votes_by(judge.votes, voted.votes, page, is_gate=is_gate)
            of_first, is_decided = _first_votes(voted, page, judge, votes, is_gate)
            first += of_first
            if of_first:
                asked_together.add(voted.url if isinstance(voted, PageCheck) else "")
            own += 0 if is_decided else votes
    if judge.first is not None and judge.first.is_decision:
        # One request has all the claims on a page.
        first = len(asked_together)
    return PlannedVotes(stored, own, first, sources)


def _first_votes(
    voted: VotedBy,
    page: PageShown | None,
    judge: JudgeSettings,
    votes: int,
    is_gate: bool,
) -> tuple[int, bool]:
    """Return the votes of a first judge, and whether they decide."""
    if judge.first is None or (is_gate and judge.doubt == "gates"):
        return 0, False
    of_first = 1
    if not judge.first.is_decision:
        of_first = first_judge_votes(votes, judge.doubt)
    # Those of whichever judge cast them: the best that is known of the first one's doubt.
    known = (voted.first_votes or voted.votes)[:of_first]
    confidence = judge.first_confidence
    return of_first, not first_judge_doubts(known, page, judge.doubt, confidence)


def voted_sources(evidence: Evidence) -> list[tuple[VotedBy, PageShown | None]]:
    """Return what was voted on, the answer or each page, in the order asked."""
    found: list[tuple[VotedBy, PageShown | None]] = [(evidence, None)]
    found += [(check, check.page) for check in evidence.pages]
    return [(voted, page) for voted, page in found if voted.votes]


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
    return max(len(votes), FIRST_VOTES)
