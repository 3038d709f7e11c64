"""How often a judge votes on a claim, and when the votes decide; pure.

Nothing here loads much: ``--help`` needs it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# As many votes as the script asks for, in place of an odd number.
ALWAYS = "always"
# Claims with this number of trials, the benchmark's, follow the rule; others keep their own number.
DEFAULT_TRIALS = 3
# So many votes are asked for at first.
FIRST_VOTES = 2
_ODD_NUMBER = re.compile("[0-9]{0,2}[13579]")


@dataclass(frozen=True)
class VoteRule:
    """How often a judge votes on a claim.

    Args:
        most: votes, in place of the script's default number; ``None`` for the script's own.
    """

    most: int | None = None

    @classmethod
    def parse(cls, text: object) -> VoteRule:
        """Return the rule of ``always`` or an odd number.

        Raises:
            ValueError: the text is neither.
        """
        rule = str(text)
        if rule == ALWAYS:
            return cls()
        if _ODD_NUMBER.fullmatch(rule) is None:
            raise ValueError(f"{rule!r} is neither always nor an odd number such as 1")
        return cls(int(rule))

    def __str__(self) -> str:
        """Return the text that ``parsed`` reads."""
        return ALWAYS if self.most is None else str(self.most)

    def trials(self, num_trials: int = DEFAULT_TRIALS) -> int:
        """Return the most votes on a claim for which a script gives this number."""
        return num_trials if self.most is None or num_trials != DEFAULT_TRIALS else self.most

    def likely_votes(self, num_trials: int) -> int:
        """Return the votes on a claim for which a script gives this number, if they agree."""
        return min(FIRST_VOTES, self.trials(num_trials))


def vote_rule(text: object) -> str:
    """Return a rule in its text form; raises ``ValueError`` as ``VoteRule.parsed``."""
    return str(VoteRule.parse(text))


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
    """Return how many further trials are needed in any case, so that they can be asked together."""
    if outcome(votes, num_trials) is not None:
        return 0
    if not votes:
        return min(FIRST_VOTES, num_trials)
    return num_trials // 2 + 1 - max(sum(votes), len(votes) - sum(votes))
