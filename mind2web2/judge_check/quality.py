"""A judge's quality by its replies to the labelled set: accuracy, errors by category, comparison; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import combinations
from statistics import fmean
from typing import Any

from mind2web2.judge_check.check import CaseOutcome, JudgeCheck
from mind2web2.judge_check.record import CheckRecord
from mind2web2.statistics.agreement import Estimate, share
from mind2web2.statistics.paired import PairedTest, binomial_p_value, holm, paired_test

_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Rates:
    """How often a judge is right on some cases; each figure with Wilson's interval.

    Args:
        false_accepted: share of the false claims that it takes for supported.
        true_rejected: share of the true claims that it takes for unsupported.
    """

    cases: int
    right: int
    accuracy: Estimate
    false_accepted: Estimate
    true_rejected: Estimate


def rates(outcomes: Iterable[CaseOutcome]) -> Rates:
    """Return the rates of the cases that the judge replied to."""
    replied = [outcome for outcome in outcomes if outcome.is_right is not None]
    right = [outcome.is_right is True for outcome in replied]
    of_false, of_true = (
        share([not outcome.is_right for outcome in replied if outcome.case.right is verdict])
        for verdict in (False, True)
    )
    return Rates(len(right), sum(right), share(right), of_false, of_true)


@dataclass(frozen=True)
class Quality:
    """A judge on the labelled set.

    Args:
        weak: categories with more errors than the others explain.
        lean_p: p-value of both errors being equally frequent (exact, of claims that differ in one detail).
        votes_agree: how often the first two votes on a page are the same.
    """

    check: JudgeCheck
    overall: Rates
    by_category: dict[str, Rates]
    weak: list[str]
    lean_p: float
    votes_agree: Estimate

    @property
    def wrong(self) -> list[CaseOutcome]:
        """Return the cases with a wrong reply."""
        return [outcome for outcome in self.check.outcomes if outcome.is_right is False]

    @property
    def failures(self) -> Counter[str]:
        """Return why cases have no reply, with their numbers."""
        return Counter(outcome.failure for outcome in self.check.outcomes if outcome.failure is not None)

    @property
    def invalid(self) -> int:
        """Return the number of cases without a valid reply."""
        return sum(outcome.is_invalid for outcome in self.check.outcomes)

    @property
    def declined(self) -> int:
        """Return the number of replies that the judge declined."""
        return sum(outcome.declined for outcome in self.check.outcomes)

    @property
    def leaning(self) -> str | None:
        """Return which of both errors is more frequent, beyond chance."""
        if self.lean_p >= _LEVEL:
            return None
        if (self.overall.false_accepted.value or 0.0) > (self.overall.true_rejected.value or 0.0):
            return "accepts false claims more often than it rejects true ones"
        return "rejects true claims more often than it accepts false ones"

    def record(self) -> CheckRecord | None:
        """Return the check as results name it, ``None`` without any reply."""
        labelled, accuracy = self.check.labelled, self.overall.accuracy
        if accuracy.value is None or accuracy.low is None or accuracy.high is None:
            return None
        return CheckRecord(
            judge=self.check.judge,
            set_version=labelled.version,
            set_digest=labelled.digest,
            is_whole_set=labelled.is_whole and not self.failures,
            cases=self.overall.cases,
            accuracy=accuracy.value,
            low=accuracy.low,
            high=accuracy.high,
            checked=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def summary(self) -> dict[str, Any]:
        """Return the figures as JSON."""
        check = self.check
        return {
            "judge": check.judge.model_dump(),
            "overall": asdict(self.overall),
            "categories": {name: asdict(found) for name, found in self.by_category.items()},
            "weak_categories": self.weak,
            "leaning": self.leaning,
            "lean_p_value": self.lean_p,
            "votes_agree": asdict(self.votes_agree),
            "invalid_replies": {"asked_again": check.repairs, "never_valid": self.invalid},
            "declined": self.declined,
            "failures": dict(self.failures),
            "wrong": [
                {
                    "id": outcome.case.id,
                    "category": outcome.case.category,
                    "question": outcome.case.question,
                    "right": outcome.case.right,
                    "given": outcome.given,
                }
                for outcome in self.wrong
            ],
            "usage": check.usage.as_json(),
            "seconds": round(check.seconds, 1),
        }


def quality(check: JudgeCheck) -> Quality:
    """Return a judge's quality by its replies."""
    by_category = {
        name: rates(outcome for outcome in check.outcomes if outcome.case.category == name)
        for name in check.labelled.categories
    }
    overall = rates(check.outcomes)
    weak = [name for name, own in by_category.items() if _is_weak(own, overall, len(by_category))]
    wrong = [outcome.case.right for outcome in check.outcomes if outcome.is_right is False]
    accepted, rejected = wrong.count(False), wrong.count(True)
    votes = [own for outcome in check.outcomes for own in outcome.votes if len(own) > 1]
    return Quality(
        check,
        overall,
        by_category,
        weak,
        binomial_p_value(accepted, accepted + rejected),
        share([own[0] == own[1] for own in votes]),
    )


def _is_weak(own: Rates, overall: Rates, categories: int) -> bool:
    """Test whether so few right replies are likely at the accuracy of the other categories (Bonferroni)."""
    others = overall.cases - own.cases
    if not others or not own.cases:
        return False
    # Jeffreys' estimate: no accuracy is taken for certain.
    accuracy = (overall.right - own.right + 0.5) / (others + 1)
    chance = sum(
        math.comb(own.cases, right) * accuracy**right * (1 - accuracy) ** (own.cases - right)
        for right in range(own.right + 1)
    )
    return chance < _LEVEL / categories


@dataclass(frozen=True)
class JudgeComparison:
    """The difference of two judges' accuracies over the cases to which both replied.

    Args:
        test: over pairs of a true claim and its false twin, which are not independent.
    """

    first: JudgeCheck
    second: JudgeCheck
    cases: int
    test: PairedTest
    holm_p: float

    def summary(self) -> dict[str, Any]:
        """Return the figures as JSON."""
        return {
            "first": self.first.judge.model_dump(),
            "second": self.second.judge.model_dump(),
            "cases": self.cases,
            "holm_p_value": self.holm_p,
        } | asdict(self.test)


def comparisons(checks: Sequence[JudgeCheck]) -> list[JudgeComparison]:
    """Compare each two judges; p-values are corrected for their number (Holm)."""
    pairs = list(combinations(checks, 2))
    tests = [_paired(first, second) for first, second in pairs]
    corrected = holm([1.0 if test.p_value is None else test.p_value for _, test in tests])
    return [
        JudgeComparison(*pair, cases, test, p)
        for pair, (cases, test), p in zip(pairs, tests, corrected, strict=True)
    ]


def _paired(first: JudgeCheck, second: JudgeCheck) -> tuple[int, PairedTest]:
    clusters: dict[str, list[int]] = {}
    for one, other in zip(first.outcomes, second.outcomes, strict=True):
        if one.is_right is not None and other.is_right is not None:
            clusters.setdefault(one.case.pair, []).append(other.is_right - one.is_right)
    differences = [fmean(own) for own in clusters.values()]
    return sum(map(len, clusters.values())), paired_test(differences, (-1.0, 1.0))
