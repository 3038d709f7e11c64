"""The votes of two judges: a cheap one votes first, and a strong one decides in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mind2web2.judge.voting import Ballot, Shown, Voted, Voter, votes_of
from mind2web2.rubric.verdicts import Vote
from mind2web2.rubric.vote_rule import FIRST_VOTES
from mind2web2.utils.aio import all_or_first_error

# The rule of two judges, as results name it. Results of earlier versions have other rules.
RULE = "split votes, failed gates"
# The share of the claims that the strong judge decides, where no result tells.
SHARE_OF_STRONG = 0.2


def second_judge_decides(votes: Sequence[Vote], is_gate: bool) -> bool:
    """Tell whether the second judge decides in place of the first, which cast these votes.

    It does where the votes differ or one was declined, and where a gate fails.
    """
    supported = {vote.supported for vote in votes}
    is_declined = any(vote.declined is not None for vote in votes)
    return is_declined or (supported != {True} and (is_gate or len(supported) > 1))


async def votes_of_two(first: Voter, strong: Voter, ballot: Ballot[Voter, Shown]) -> Voted[Shown]:
    """Return the votes of the first judge, or those of the strong one where it decides."""
    shown = await ballot.prepare(first)
    # Each rule of votes takes two, because a single vote cannot differ. If they differ, the strong
    # judge decides.
    cast = await all_or_first_error(
        ballot.cast(first, shown, trial) for trial in range(1, FIRST_VOTES + 1)
    )
    votes = tuple(vote for vote, _ in cast)
    if not second_judge_decides(votes, ballot.is_gate):
        return Voted(votes, cast[-1][1], first.model_for(""))
    voted = await votes_of(strong, ballot)
    return replace(voted, by=strong.model_for(""), first_votes=votes)
