"""The figures of a check as ``check-judge --json`` prints them, a model for each."""

from __future__ import annotations

from dataclasses import asdict
from typing import Self

from pydantic import BaseModel, ConfigDict

from mind2web2_trust.judge_check.check import CaseOutcome, JudgeComparison, Quality, Rates
from mind2web2_trust.judge_check.labelled_set import LabelledSet


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True)


class SetFigures(_Figures):
    """The set of cases that the judges were asked."""

    version: int
    seed: int | None
    digest: str
    cases: int
    is_whole: bool

    @classmethod
    def of(cls, labelled: LabelledSet) -> Self:
        """Return the figures of a set."""
        return cls(
            version=labelled.version,
            seed=labelled.seed,
            digest=labelled.digest,
            cases=len(labelled.cases),
            is_whole=labelled.is_whole,
        )


class WrongReply(_Figures):
    """A case with a wrong reply."""

    id: str
    category: str
    question: str
    right: object
    given: object

    @classmethod
    def of(cls, outcome: CaseOutcome) -> Self:
        """Return the reply of a case."""
        case = outcome.case
        return cls(
            id=case.id,
            category=case.category,
            question=case.question,
            right=case.right,
            given=outcome.given,
        )


class JudgeFigures(_Figures):
    """One judge; ``verdict`` is ``None`` without any reply.

    Args:
        asked_again: replies that did not have the form that was asked for.
    """

    verdict: str | None
    judge: dict[str, object]
    name: str
    overall: Rates
    balanced_accuracy: float | None
    categories: dict[str, Rates]
    weak_categories: list[str]
    asked_again: int
    declined: int
    failures: dict[str, int]
    wrong: list[WrongReply]
    usage: dict[str, object]
    seconds: float

    @classmethod
    def of(cls, quality: Quality) -> Self:
        """Return the figures of a judge."""
        check, record = quality.check, quality.record()
        return cls(
            verdict=None if record is None else record.fitness,
            judge=check.judge.identity.model_dump(),
            name=check.name,
            overall=quality.overall,
            balanced_accuracy=quality.balanced_accuracy,
            categories=quality.by_category,
            weak_categories=quality.weak,
            asked_again=check.judge.repairs,
            declined=quality.declined,
            failures=dict(quality.failures),
            wrong=[WrongReply.of(outcome) for outcome in quality.wrong],
            usage={**check.judge.usage.as_json()},
            seconds=round(check.seconds, 1),
        )


class ComparisonFigures(_Figures):
    """The difference of two judges' accuracies."""

    first: dict[str, object]
    second: dict[str, object]
    cases: int
    holm_p_value: float
    other_verdicts: int
    difference: float
    p_value: float | None
    interval: dict[str, float] | None
    is_exact: bool

    @classmethod
    def of(cls, comparison: JudgeComparison) -> Self:
        """Return the figures of a comparison."""
        test = comparison.test
        return cls(
            first=comparison.first.judge.identity.model_dump(),
            second=comparison.second.judge.identity.model_dump(),
            cases=comparison.cases,
            holm_p_value=comparison.holm_p,
            other_verdicts=comparison.other_verdicts,
            difference=test.difference,
            p_value=test.p_value,
            interval=None if test.interval is None else asdict(test.interval),
            is_exact=test.is_exact,
        )


class CheckReport(_Figures):
    """A whole check: the set, each judge, and each two of them."""

    set: SetFigures
    votes: int
    judges: list[JudgeFigures]
    comparisons: list[ComparisonFigures]
