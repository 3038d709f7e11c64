"""The fitness of a judge for scores, by its check on the labelled set (docs/trust.md)."""

from __future__ import annotations

from typing import Literal

from mind2web2.judge.record import CheckRecord
from mind2web2.utils.text import percent

# Below it, a difference between agents shrinks to less than 80%, and takes over 1.5 times as many
# tasks.
LEAST_ACCURACY = 0.9
# A check of fewer cases leaves open whether the judge reaches it.
_LEAST_LOW = 0.8
# Half of the labelled claims are true.
_COIN = 0.5

Fitness = Literal["guessing", "too weak", "unclear", "fit"]


def fitness(check: CheckRecord) -> Fitness:
    """Return what a check says of a judge.

    A judge fails where the 95% interval of its accuracy ends below ``LEAST_ACCURACY``; it guesses
    where its accuracy on claims, too, may be that of a coin.
    """
    if check.high < LEAST_ACCURACY:
        low = check.low if check.claims_low is None else min(check.low, check.claims_low)
        return "guessing" if low <= _COIN else "too weak"
    is_shown = check.accuracy >= LEAST_ACCURACY and check.low >= _LEAST_LOW
    return "fit" if is_shown else "unclear"


def verdict(check: CheckRecord) -> str:
    """Return the sentence that ends a check."""
    least = f"{LEAST_ACCURACY:.0%}"
    sentences: dict[Fitness, str] = {
        "guessing": "No better than guessing: do not use this judge.",
        "too weak": f"Too weak: less than {least} right. Do not rest a comparison of agents on "
        "this judge.",
        "unclear": f"Unclear whether {least} are right: check more cases, or another judge.",
        "fit": f"Enough to compare agents ({least} right); docs/trust.md says what other "
        "decisions need.",
    }
    return f"Verdict: {sentences[fitness(check)]}"


def failure(check: CheckRecord) -> str | None:
    """Return in one line that a judge failed its check; ``None`` if it did not."""
    found = fitness(check)
    if found not in ("guessing", "too weak"):
        return None
    right = percent(check.accuracy)
    interval = f"{percent(check.low)} to {percent(check.high)}"
    share = f"{right} right ({interval}) on the labelled set"
    how = "no better than guessing" if found == "guessing" else f"{LEAST_ACCURACY:.0%} is the least"
    return (
        f"the judge failed its check: {share} on {check.checked[:10]}, {how}; do not trust these "
        "scores (docs/trust.md)"
    )
