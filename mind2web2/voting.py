"""Majority over independent trials (contract.md, "Majority vote"); pure."""

from collections.abc import Sequence


def check_trials(num_trials: int) -> None:
    """Raise ``ValueError`` unless ``num_trials`` is odd and positive."""
    if type(num_trials) is not int or num_trials < 1 or num_trials % 2 == 0:
        raise ValueError(f"num_trials must be an odd number such as 3, not {num_trials!r}")


def outcome(votes: Sequence[bool], num_trials: int) -> bool | None:
    """Return what the votes decide, or ``None`` while they do not.

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
    """Return how many further trials are needed in any case, so that they can be asked together."""
    if outcome(votes, num_trials) is not None:
        return 0
    if not votes:
        return min(2, num_trials)
    return num_trials // 2 + 1 - max(sum(votes), len(votes) - sum(votes))
