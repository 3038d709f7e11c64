"""The votes on a claim: what a judge votes on, and how often it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from mind2web2.rubric.verdicts import Vote
from mind2web2.rubric.vote_rule import trials_needed
from mind2web2.utils.aio import all_or_first_error

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
        by: the model that cast them, where there are several judges.
        first_votes: those of another judge, in whose place these decide.
    """

    votes: tuple[Vote, ...]
    shown: Shown
    by: str | None = None
    first_votes: tuple[Vote, ...] = ()


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
