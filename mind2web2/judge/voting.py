"""The votes on a claim: of one judge, or of a cheap one and the strong one that decides in its place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from mind2web2.rubric.verdicts import Vote
from mind2web2.rubric.vote_rule import FIRST_VOTES, trials_needed
from mind2web2.utils.aio import all_or_first_error

# The rule of two judges, as results name it. Results of earlier versions have other rules.
CASCADE_RULE = "split votes, failed gates"
# The evidence that a judge sees with the claim.
Shown = TypeVar("Shown")
Voter = TypeVar("Voter", bound="Named")


class Named(Protocol):
    """A judge by the name of its model."""

    def model_for(self, requested: str) -> str:
        """Return the model that answers where a script names ``requested``."""


@dataclass(frozen=True)
class Ballot(Generic[Voter, Shown]):
    """A claim that judges vote on.

    Args:
        prepare: returns what a judge is shown with the claim.
        cast: returns one trial's vote, and what the judge was shown at last.
        num_trials: the most votes.
        is_gate: the claim is a gate, or the script decides by its verdict alone.
    """

    prepare: Callable[[Voter], Awaitable[Shown]]
    cast: Callable[[Voter, Shown, int], Coroutine[Any, Any, tuple[Vote, Shown]]]
    num_trials: int
    is_gate: bool


@dataclass(frozen=True)
class Voted(Generic[Shown]):
    """Votes on a claim, and what the judge was shown with the last of them.

    Args:
        by: the model that cast them, where there are two judges.
        first_votes: those of the first judge, in whose place these decide.
    """

    votes: tuple[Vote, ...]
    shown: Shown
    by: str | None = None
    first_votes: tuple[Vote, ...] = ()


def second_judge_decides(votes: Sequence[Vote], is_gate: bool) -> bool:
    """Tell whether the second judge decides in place of the first, which cast these votes.

    It does where the votes differ or one was declined, and where a gate fails.
    """
    supported = {vote.supported for vote in votes}
    is_declined = any(vote.declined is not None for vote in votes)
    return is_declined or (supported != {True} and (is_gate or len(supported) > 1))


async def votes_of(judge: Voter, ballot: Ballot[Voter, Shown]) -> Voted[Shown]:
    """Return the votes of one judge, as many as decide."""
    shown = await ballot.prepare(judge)
    votes: list[Vote] = []
    while needed := trials_needed([vote.supported for vote in votes], ballot.num_trials):
        trials = range(len(votes) + 1, len(votes) + needed + 1)
        cast = await all_or_first_error(ballot.cast(judge, shown, trial) for trial in trials)
        votes.extend(vote for vote, _ in cast)
        shown = cast[-1][1]
    return Voted(tuple(votes), shown)


async def votes_of_two(first: Voter, strong: Voter, ballot: Ballot[Voter, Shown]) -> Voted[Shown]:
    """Return the votes of the first judge, or those of the strong one where it decides."""
    shown = await ballot.prepare(first)
    # Two by each rule of votes, as one cannot differ. Where they differ, the strong one decides.
    cast = await all_or_first_error(
        ballot.cast(first, shown, trial) for trial in range(1, FIRST_VOTES + 1)
    )
    votes = tuple(vote for vote, _ in cast)
    if not second_judge_decides(votes, ballot.is_gate):
        return Voted(votes, cast[-1][1], first.model_for(""))
    voted = await votes_of(strong, ballot)
    return replace(voted, by=strong.model_for(""), first_votes=votes)
