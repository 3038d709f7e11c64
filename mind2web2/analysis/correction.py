"""A corrected score, and what it takes from the judge's scores and from exact ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mind2web2.analysis.audited import AuditedAnswer
from mind2web2.analysis.correction_record import DIGITS, CorrectionFigures, Ends
from mind2web2.analysis.sample_basis import AnswerBasis, AnswerName, SampledFrom
from mind2web2.statistics.agreement import Cells
from mind2web2.statistics.correction import CorrectedMean
from mind2web2.statistics.sampled_answers import JudgedTwice, correct_by_answers, sampling_order
from mind2web2.statistics.uncertainty import Interval, rounded

# Auditors take answers in one order, so that their labels are of the same answers.
_AUDIT_SEED = 0


def population_of(answers: Sequence[AuditedAnswer]) -> SampledFrom:
    """Return all these answers in the order in which a sample takes them."""
    basis = basis_of(answers)
    order = sampling_order([*basis], _AUDIT_SEED)
    return SampledFrom(order=tuple(order), basis=tuple(basis[name] for name in order))


@dataclass(frozen=True, slots=True)
class Correction:
    """An agent's score, corrected by whole answers that people labelled or a strong judge judged.

    Args:
        by: who corrects.
        low: with leaves that nobody decides as not supported, and ``high`` with these as supported.
        weight: of the judge's scores.
        cells: the verdicts of the judge and of who corrects, by task.
        wrong_labels: what the score changes by if ``WRONG_LABELS`` of the labels are wrong.
    """

    by: str
    mean: CorrectedMean
    low: CorrectedMean
    high: CorrectedMean
    weight: float
    cells: Mapping[str, Cells]
    wrong_labels: float | None = None

    @property
    def value(self) -> float | None:
        """Return the corrected score, ``None`` where the sample has too few tasks."""
        return self.mean.estimate if self.mean.is_enough else None

    @property
    def these_tasks(self) -> Interval | None:
        """Return the interval of the score that the whole sample frame would give."""
        return span(self.low.these_tasks, self.high.these_tasks)

    @property
    def tasks_at_large(self) -> Interval | None:
        """Return the interval of that score over all tasks of the kind."""
        return span(self.low.tasks_at_large, self.high.tasks_at_large)

    def figures(self) -> CorrectionFigures:
        """Return it as it is published."""
        value = self.value
        extremes = None
        if self.low is not self.high:
            extremes = (
                round(self.low.estimate, DIGITS),
                round(self.high.estimate, DIGITS),
            )
        if_wrong = None
        if self.wrong_labels is not None and value is not None:
            if_wrong = round(min(1.0, max(0.0, value + self.wrong_labels)), DIGITS)
        return CorrectionFigures(
            by=self.by,
            raw=round(self.mean.raw, DIGITS),
            corrected=rounded(value, DIGITS),
            these_tasks=Ends.of(self.these_tasks),
            tasks_at_large=Ends.of(self.tasks_at_large),
            sampled=self.mean.labels,
            of=self.mean.population,
            to_halve=self.mean.to_halve if self.mean.is_enough else None,
            weight_of_judge=round(self.weight, 4),
            if_undecidable=extremes,
            if_labels_are_wrong=if_wrong,
        )


def span(low: Interval | None, high: Interval | None) -> Interval | None:
    """Return the interval from the low end of one to the high end of the other."""
    if low is None or high is None:
        return None
    return Interval(low.low, high.high)


@dataclass(frozen=True, slots=True)
class NoCorrection:
    """Labels or a sample that exist, but do not correct an agent's score.

    Args:
        by: who would correct.
        raw: the score by the judge.
        of: the number of answers.
        reason: why not, and what to do.
    """

    by: str
    raw: float
    of: int
    reason: str

    @classmethod
    def for_reason(cls, by: str, answers: Sequence[AuditedAnswer], reason: str) -> NoCorrection:
        """Return it for these answers."""
        scores: dict[str, list[float]] = defaultdict(list)
        for one in answers:
            scores[one.task].append(one.score)
        return cls(by, fmean(map(fmean, scores.values())), len(answers), reason)

    def figures(self) -> CorrectionFigures:
        """Return it as it is published."""
        raw = round(self.raw, DIGITS)
        return CorrectionFigures(by=self.by, raw=raw, of=self.of, reason=self.reason)


def correct_mean(
    answers: Sequence[AuditedAnswer], exact: Mapping[AnswerName, float]
) -> tuple[CorrectedMean, float]:
    """Return the mean corrected by exact scores, and the weight of the judge's."""
    twice = [JudgedTwice(one.task, one.score, exact.get(one.name)) for one in answers]
    return correct_by_answers(twice)


def basis_of(answers: Iterable[AuditedAnswer]) -> dict[AnswerName, AnswerBasis | None]:
    """Return what each answer was judged from."""
    return {one.name: one.basis for one in answers}
