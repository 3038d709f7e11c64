"""Rules of doubt in a world of random vote flips: the share of requests, and the wrong leaves that remain.

Claims, pages and truth are those of the labelled set. A vote is wrong with probability ``FLIPPED``, and its
quotation is not found with probability ``QUOTES_NOT_FOUND``, whatever the claim.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from measuring import title

from mind2web2.judge_check.invented_set import invented_set
from mind2web2.rubric.verdicts import (
    DEFAULT_TRIALS,
    Quote,
    Vote,
    doubts_of,
    is_majority,
    trials_needed,
)
from mind2web2.statistics.agreement import share_by_task
from mind2web2.statistics.correction import Z

TASKS, ANSWERS, CLAIMS, GATES = 400, 3, 12, 2
FLIPPED, QUOTES_NOT_FOUND = 0.03, 0.04
_NUMBER_OR_NAME = re.compile(r"\d+(?:[.,]\d+)*|(?<![.!?] )\b[A-Z]\w+")


@dataclass(frozen=True)
class Claim:
    """A claim on a page.

    Args:
        is_named: the page has all numbers and names of the claim.
    """

    is_true: bool
    is_named: bool


@dataclass(frozen=True)
class Judged:
    """A claim with three votes; a rule counts the first of them, or asks for the others."""

    claim: Claim
    votes: tuple[Vote, ...]
    is_gate: bool


Rule = Callable[[Judged], bool]


def is_in_doubt(judged: Judged) -> bool:
    """The signs of ``--votes doubt`` but for gates; pages of the set are never cut."""
    return bool(doubts_of(judged.votes[0], None))


def is_failure(judged: Judged) -> bool:
    """The first vote does not support the claim."""
    return not judged.votes[0].supported


def is_at_odds(judged: Judged) -> bool:
    """The first vote is not what the claim's numbers and names suggest."""
    return judged.votes[0].supported is not judged.claim.is_named


RULES: Mapping[str, Rule] = {
    "1": lambda _: False,
    "doubt without gate": is_in_doubt,
    "doubt": lambda judged: judged.is_gate or is_in_doubt(judged),
    "doubt without gate, failures": lambda judged: (
        is_in_doubt(judged) or is_failure(judged)
    ),
    "doubt without gate, names at odds": lambda judged: (
        is_in_doubt(judged) or is_at_odds(judged)
    ),
    "doubt, failures": lambda judged: (
        judged.is_gate or is_in_doubt(judged) or is_failure(judged)
    ),
    "doubt, failures, names at odds": lambda judged: (
        judged.is_gate
        or is_in_doubt(judged)
        or is_failure(judged)
        or is_at_odds(judged)
    ),
    "always": lambda _: True,
}


def claims_of_set() -> list[Claim]:
    """Return the claims of the labelled set on each of their pages."""
    found = invented_set()
    claims = []
    for claim in found.claims:
        named = _NUMBER_OR_NAME.findall(claim.question)
        for url in claim.urls:
            text = found.pages[url].text
            is_named = all(name in text for name in named)
            claims.append(Claim(url in claim.supported_by, is_named))
    return claims


def world(draws: random.Random, claims: list[Claim]) -> list[list[Judged]]:
    """Return the judged claims by task."""
    return [
        [
            _judged(draws, draws.choice(claims), is_gate=number % CLAIMS < GATES)
            for number in range(ANSWERS * CLAIMS)
        ]
        for _ in range(TASKS)
    ]


def _judged(draws: random.Random, claim: Claim, *, is_gate: bool) -> Judged:
    votes = tuple(
        Vote(
            trial=trial,
            supported=claim.is_true is not (draws.random() < FLIPPED),
            reasoning="",
            quote=Quote(
                text="x",
                match="not_found" if draws.random() < QUOTES_NOT_FOUND else "found",
            ),
        )
        for trial in range(1, DEFAULT_TRIALS + 1)
    )
    return Judged(claim, votes, is_gate)


def counted(judged: Judged, rule: Rule) -> tuple[Vote, ...]:
    """Return the votes that the rule asks for."""
    if not rule(judged):
        return judged.votes[:1]
    agree = [vote.supported for vote in judged.votes[:2]]
    return judged.votes[: 2 + trials_needed(agree, DEFAULT_TRIALS)]


def is_wrong(judged: Judged, rule: Rule) -> bool:
    """Tell whether the verdict by the rule is not the truth."""
    return is_majority(counted(judged, rule)) is not judged.claim.is_true


def print_rules(tasks: list[list[Judged]]) -> None:
    """Print each rule's requests, wrong leaves and the flips of first votes that it saw."""
    leaves = [judged for task in tasks for judged in task]
    always = sum(len(counted(judged, RULES["always"])) for judged in leaves)
    flips = [
        judged
        for judged in leaves
        if judged.votes[0].supported is not judged.claim.is_true
    ]
    _line(f"{'rule':36}requests   wrong leaves (95%)              flips seen")
    for name, rule in RULES.items():
        requests = sum(len(counted(judged, rule)) for judged in leaves) / always
        wrong = share_by_task(
            [(sum(is_wrong(one, rule) for one in task), len(task)) for task in tasks]
        )
        seen = sum(map(rule, flips)) / len(flips)
        interval = f"({wrong.low:.2%} to {wrong.high:.2%})"
        share = f"{wrong.value:.2%} {interval}"
        _line(f"{name:36}{requests:8.1%}   {share:32}{seen:9.0%}")


def print_bound() -> None:
    """Print what any rule of 60% of the requests must see of the flips."""
    by_always = 3 * FLIPPED**2 - 2 * FLIPPED**3
    a_claim = 2 + 2 * FLIPPED * (1 - FLIPPED)
    again = (0.6 * a_claim - 1) / (a_claim - 1)
    unseen = (1 - again) * FLIPPED + again * by_always
    needed = 1 - by_always / FLIPPED
    more = unseen - by_always
    # Almost every leaf that differs is wrong by the rule alone: the variance of a leaf's difference.
    hidden = Z**2 * more * (1 - more) / more**2
    _line(f"\nAt 60% of the requests, {again:.0%} of the first votes are asked again.")
    _line(
        f"Signs that say nothing of the flips leave {unseen:.2%} of the leaves wrong, "
        f"three votes {by_always:.2%}."
    )
    _line(
        "To leave at most twice as many wrong as three votes do, signs have to show "
        f"{needed:.0%} of the flips, on {again:.0%} of the votes."
    )
    _line(
        f"The difference of {more:.1%} is within its own 95% interval in worlds of up to {hidden:.0f} leaves."
    )


def _line(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    claims = claims_of_set()
    right = sum(claim.is_true is claim.is_named for claim in claims) / len(claims)
    title(
        f"{TASKS} tasks, {ANSWERS} answers of {CLAIMS} claims each, {FLIPPED:.0%} of the votes flipped"
    )
    _line(
        f"Numbers and names of a claim on its page tell the truth of {right:.0%} of {len(claims)} claims.\n"
    )
    print_rules(world(random.Random(1), claims))
    print_bound()
