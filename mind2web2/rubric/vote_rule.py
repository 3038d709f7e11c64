"""How often a judge votes on a claim, and when the votes decide; pure.

Nothing here loads much: ``--help`` needs it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Claims with the benchmark's number have as many votes as the run says; others keep their own.
DEFAULT_TRIALS = 3
# So many votes are asked for at first.
FIRST_VOTES = 2
_ODD_NUMBER = re.compile("[0-9]{0,2}[13579]")


def vote_count(text: object) -> int:
    """Return an odd number of votes.

    Raises:
        ValueError: the text is none.
    """
    if _ODD_NUMBER.fullmatch(str(text)) is None:
        raise ValueError(f"{str(text)!r} is not an odd number such as 3")
    return int(str(text))


def most_votes(num_trials: int, votes: int) -> int:
    """Return the most votes on a claim, by the numbers of its script and of the run."""
    return votes if num_trials == DEFAULT_TRIALS else num_trials


def checked_trials(num_trials: int) -> int:
    """Return a number of trials. Raises ValueError: it is not odd and positive."""
    if type(num_trials) is not int or num_trials < 1 or num_trials % 2 == 0:
        raise ValueError(f"num_trials must be an odd number such as 3, not {num_trials!r}")
    return num_trials


def outcome(votes: Sequence[bool], num_trials: int) -> bool | None:
    """Return the decision of the votes, ``None`` while there is none.

    Two first trials that agree settle the vote, and so does an absolute majority of ``num_trials``.
    """
    if len(votes) == 2 and votes[0] is votes[1]:
        return votes[0]
    needed = num_trials // 2 + 1
    if sum(votes) >= needed:
        return True
    if len(votes) - sum(votes) >= needed:
        return False
    return None


def trials_needed(votes: Sequence[bool], num_trials: int) -> int:
    """Return how many further trials undecided votes need in any case, to be asked together."""
    if not votes:
        return min(FIRST_VOTES, num_trials)
    return num_trials // 2 + 1 - max(sum(votes), len(votes) - sum(votes))
