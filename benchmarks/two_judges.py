"""Two judges in simulated worlds: price, agreement and wrong leaves by each rule, and the guarantee's errors.

The cheap judge errs on 5% of the claims, the strong one on 1%, and a request of the cheap one costs a tenth.
``EXTRACTIONS`` of each answer are the strong judge's in any case.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from measuring import title

from mind2web2.rubric.verdicts import (
    DEFAULT_TRIALS,
    Quote,
    Vote,
    first_judge_doubts,
    is_majority,
    trials_needed,
)
from mind2web2.runs.two_judges import (
    ALONE,
    SHARED_RULES,
    SharedRule,
    boldest_rule,
)
from mind2web2.statistics.agreement import share_by_task
from mind2web2.statistics.paired import Estimate

ANSWERS, CLAIMS, EXTRACTIONS = 3, 12, 1
CHEAP_ERRS, STRONG_ERRS, CHEAP_PRICE = 0.05, 0.01, 0.1
QUOTES_NOT_FOUND, SUPPORTED = 0.04, 0.6
SIMULATIONS = 200


# By verdict, and by whether the quotation is found; made once, as there are millions.
_VOTES = {
    (supported, is_found): Vote(
        trial=1,
        supported=supported,
        reasoning="",
        quote=Quote(text="x", match="found" if is_found else "not_found"),
    )
    for supported in (True, False)
    for is_found in (True, False)
}


@dataclass(frozen=True)
class World:
    """How the judges err.

    Args:
        systematic: share of the errors that all votes on a claim have in common.
        gates: of the claims of an answer.
    """

    name: str
    systematic: float
    gates: int = 2


@dataclass(frozen=True)
class Claim:
    """A claim with the votes of both judges, all of them as if each judged alone."""

    is_true: bool
    is_gate: bool
    cheap: tuple[Vote, ...]
    strong: tuple[Vote, ...]


WORLDS = (
    World("each vote errs on its own", 0),
    World("half of the errors are those of all votes on a claim", 0.5),
    World("all votes on a claim err alike", 1),
    World("half of the errors alike, half of the claims are gates", 0.5, gates=6),
)


def world_of(draws: random.Random, world: World, tasks: int) -> list[list[Claim]]:
    """Return claims by task."""
    return [
        [
            _claim(draws, world, is_gate=number % CLAIMS < world.gates)
            for number in range(ANSWERS * CLAIMS)
        ]
        for _ in range(tasks)
    ]


def _claim(draws: random.Random, world: World, *, is_gate: bool) -> Claim:
    is_true = draws.random() < SUPPORTED
    cheap = _votes(draws, world, CHEAP_ERRS, is_true=is_true)
    strong = _votes(draws, world, STRONG_ERRS, is_true=is_true)
    return Claim(is_true, is_gate, cheap, strong)


def _votes(
    draws: random.Random, world: World, errs: float, *, is_true: bool
) -> tuple[Vote, ...]:
    alike = draws.random() < errs * world.systematic
    votes: list[Vote] = []
    while needed := trials_needed([vote.supported for vote in votes], DEFAULT_TRIALS):
        for _ in range(needed):
            errs_now = alike or draws.random() < errs * (1 - world.systematic)
            is_found = draws.random() >= QUOTES_NOT_FOUND
            votes.append(_VOTES[is_true is not errs_now, is_found])
    return tuple(votes)


def decided(claim: Claim, rule: SharedRule) -> tuple[bool, float]:
    """Return the verdict of both by a rule, and the price in requests of the strong judge."""
    if rule == ALONE:
        return is_majority(claim.cheap), len(claim.cheap) * CHEAP_PRICE
    if rule == "gates" and claim.is_gate:
        return is_majority(claim.strong), len(claim.strong)
    first = claim.cheap[:2]
    price = len(first) * CHEAP_PRICE
    if first_judge_doubts(first, None, rule):
        return is_majority(claim.strong), price + len(claim.strong)
    return is_majority(first), price


def other_verdicts(tasks: Sequence[Sequence[Claim]], rule: SharedRule) -> Estimate:
    """Return the share of verdicts that are not the strong judge's."""
    return share_by_task(
        [
            (
                sum(
                    decided(claim, rule)[0] is not is_majority(claim.strong)
                    for claim in own
                ),
                len(own),
            )
            for own in tasks
        ]
    )


def print_rules(tasks: Sequence[Sequence[Claim]]) -> None:
    """Print price, agreement and wrong leaves of each rule."""
    claims = [claim for own in tasks for claim in own]
    extractions = EXTRACTIONS * len(claims) / CLAIMS
    alone = extractions + sum(len(claim.strong) for claim in claims)
    wrong = sum(is_majority(claim.strong) is not claim.is_true for claim in claims)
    _line(f"{'rule':14}price   other verdicts (95%)      wrong leaves")
    _line(f"{'strong alone':14} 100%   {'':24}{wrong / len(claims):8.2%}")
    for rule in SHARED_RULES:
        verdicts = [decided(claim, rule) for claim in claims]
        price = sum(cost for _, cost in verdicts)
        price += extractions * (CHEAP_PRICE if rule == ALONE else 1)
        wrong = sum(
            verdict is not claim.is_true
            for (verdict, _), claim in zip(verdicts, claims, strict=True)
        )
        others = other_verdicts(tasks, rule)
        share = f"{others.value:.2%} ({others.low:.2%} to {others.high:.2%})"
        _line(f"{rule:14}{price / alone:5.0%}   {share:24}{wrong / len(claims):8.2%}")


def print_guarantee(world: World, tasks: int, agreement: float) -> None:
    """Print how often each rule is stated to keep an agreement, and how often wrongly."""
    draws = random.Random(2)
    large = world_of(draws, world, 1500)
    true = {rule: 1 - (other_verdicts(large, rule).value or 0) for rule in SHARED_RULES}
    stated: Counter[SharedRule | None] = Counter()
    for _ in range(SIMULATIONS):
        drawn = world_of(draws, world, tasks)
        shares = {rule: other_verdicts(drawn, rule) for rule in SHARED_RULES}
        stated[boldest_rule(shares, agreement)] += 1
    false = sum(
        count for rule, count in stated.items() if rule and true[rule] < agreement
    )
    shares_of = ", ".join(
        f"{rule or 'none'} {stated[rule] / SIMULATIONS:.0%}"
        for rule in (*SHARED_RULES, None)
        if stated[rule]
    )
    _line(
        f"{tasks:4} tasks, {agreement:.1%}: {shares_of}; not true {false / SIMULATIONS:.1%}"
    )


def _line(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> None:
    """Print the figures of all worlds."""
    for world in WORLDS:
        title(f"{world.name}; gates {world.gates} of {CLAIMS} claims")
        print_rules(world_of(random.Random(1), world, 400))
    world = WORLDS[1]
    title(f"rules stated to keep an agreement ({world.name})")
    claims = world_of(random.Random(2), world, 1500)
    for rule in SHARED_RULES:
        kept = 1 - (other_verdicts(claims, rule).value or 0)
        _line(f"{rule:14} in truth {kept:.2%}")
    true_split = 1 - (other_verdicts(claims, "split").value or 0)
    for tasks in (40, 130):
        for agreement in (0.95, round(true_split + 0.0005, 4)):
            print_guarantee(world, tasks, agreement)


if __name__ == "__main__":
    main()
