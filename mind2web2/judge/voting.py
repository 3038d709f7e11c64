"""The votes on a claim: as many as decide it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mind2web2.rubric.verdicts import Vote
from mind2web2.rubric.vote_rule import trials_needed
from mind2web2.utils.aio import all_or_first_error

# The evidence that a judge sees with the claim.
Shown = TypeVar("Shown")


async def votes_on(
    cast: Callable[[int], Coroutine[Any, Any, tuple[Vote, Shown]]], num_trials: int
) -> tuple[tuple[Vote, ...], Shown]:
    """Return the votes that decide a claim, and what the judge was shown with the last of them.

    Args:
        cast: returns one trial's vote, and what the judge was shown.
        num_trials: the most votes.
    """
    votes: list[Vote] = []
    while needed := trials_needed([vote.supported for vote in votes], num_trials):
        trials = range(len(votes) + 1, len(votes) + needed + 1)
        voted = await all_or_first_error(cast(trial) for trial in trials)
        votes.extend(vote for vote, _ in voted)
        shown = voted[-1][1]
    return tuple(votes), shown
