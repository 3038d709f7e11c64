"""Two judges in simulated worlds: price, agreement with the strong judge and wrong leaves.

The cheap judge errs on 5% of the claims, the strong one on 1%, and a request of the cheap one costs
a tenth. ``EXTRACTIONS`` of each answer are the strong judge's in any case.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass

from measuring import title

from mind2web2.plugins.cascade.voting import second_judge_decides
from mind2web2.rubric.verdicts import Vote, is_majority
from mind2web2.rubric.vote_rule import DEFAULT_TRIALS, FIRST_VOTES, trials_needed

ANSWERS, CLAIMS, EXTRACTIONS = 14_400 // 12, 12, 1
CHEAP_ERRS, STRONG_ERRS, CHEAP_PRICE = 0.05, 0.01, 0.1
SUPPORTED = 0.6
_VOTES = {
    supported: Vote(trial=1, supported=supported, reasoning="") for supported in (True, False)
}


@dataclass(frozen=True)
class World:
    """How the judges err.

    Args:
        alike: share of the errors that all votes on a claim have in common.
        gates: of the claims of an answer.
    """

    name: str
    alike: float
    gates: int = 2


WORLDS = (
    World("each vote errs on its own", 0),
    World("half of the errors are those of all votes on a claim", 0.5),
    World("the same, half of the claims are gates", 0.5, gates=6),
    World("all votes on a claim err alike", 1),
)


def _votes(draws: random.Random, world: World, errs: float, *, is_true: bool) -> list[Vote]:
    alike = draws.random() < errs * world.alike
    votes: list[Vote] = []
    while needed := trials_needed([vote.supported for vote in votes], DEFAULT_TRIALS):
        for _ in range(needed):
            errs_now = alike or draws.random() < errs * (1 - world.alike)
            votes.append(_VOTES[is_true is not errs_now])
    return votes


def report(world: World) -> None:
    """Print a line for the cascade, and for either judge alone."""
    draws = random.Random(1)
    price = alone = float(EXTRACTIONS * ANSWERS)
    others = wrong = wrong_strong = wrong_cheap = 0
    claims = ANSWERS * CLAIMS
    for number in range(claims):
        is_true = draws.random() < SUPPORTED
        cheap = _votes(draws, world, CHEAP_ERRS, is_true=is_true)
        strong = _votes(draws, world, STRONG_ERRS, is_true=is_true)
        alone += len(strong)
        deciding = first = cheap[:FIRST_VOTES]
        price += FIRST_VOTES * CHEAP_PRICE
        if second_judge_decides(first, is_gate=number % CLAIMS < world.gates):
            deciding = strong
            price += len(strong)
        verdict = is_majority(deciding)
        others += verdict is not is_majority(strong)
        wrong += verdict is not is_true
        wrong_strong += is_majority(strong) is not is_true
        wrong_cheap += is_majority(cheap) is not is_true
    sys.stdout.write(
        f"  {world.name:54} price {price / alone:4.0%}, other verdicts {others / claims:.1%}, "
        "wrong leaves "
        f"{wrong / claims:.1%} (strong alone {wrong_strong / claims:.2%}, cheap alone "
        f"{wrong_cheap / claims:.1%})\n"
    )


if __name__ == "__main__":
    title(f"{ANSWERS:,} answers of {CLAIMS} claims each")
    for world in WORLDS:
        report(world)
