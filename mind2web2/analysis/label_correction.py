"""The score corrected by whole answers that people labelled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from mind2web2.analysis.audited import AuditedAnswer, cells_by_task, label_verdicts
from mind2web2.analysis.correction import Correction, NoCorrection, basis_of, correct_mean
from mind2web2.analysis.labelled_answers import LabelledScore, score_by_labels
from mind2web2.analysis.labels import LabelFile, LeafName, labels_by_auditor
from mind2web2.analysis.sample_basis import AnswerName
from mind2web2.statistics.correction import CorrectedMean
from mind2web2.utils.program import program
from mind2web2.utils.text import counted

# People make mistakes as well: the figure shows what so many wrong labels do.
WRONG_LABELS = 0.05


@dataclass(frozen=True, slots=True)
class LabelledAnswers:
    """The whole answers that auditors labelled, which are a sample of all answers.

    Args:
        by: the auditors.
        scores: by the labels; empty if the labels are not a sample.
        reason: why they correct nothing, ``None`` where they do.
        passes: the auditors' verdicts on all leaves, as far as they decide.
    """

    by: str
    scores: Mapping[AnswerName, LabelledScore]
    reason: str | None = None
    passes: Mapping[LeafName, float] = field(default_factory=dict)


def labelled_answers(
    answers: Sequence[AuditedAnswer], audits: Path, agent: str
) -> LabelledAnswers | None:
    """Return the answers that people labelled as a whole.

    The result is ``None`` where nobody has labelled any leaf.
    """
    labels = labels_by_auditor(audits, agent)
    if not labels:
        return None
    by = f"labels of {', '.join(labels)}"
    go_on = f"go on with `{program()} view {agent} --audit {next(iter(labels))}`"
    files = [LabelFile(audits, agent, name) for name in labels]
    populations = [one for file in files if (one := file.sampled_from()) is not None]
    if not populations:
        reason = f"the labels are of single leaves, and count for agreement alone: {go_on}"
        return LabelledAnswers(by, {}, reason)
    now = basis_of(answers)
    changes = [one.describe_changes(now) for one in populations]
    if None not in changes:
        return LabelledAnswers(by, {}, f"{changes[0]}: {go_on}")
    order = populations[changes.index(None)].order
    verdicts = label_verdicts(answers, [*labels.values()])
    by_name = {one.name: one for one in answers}
    scores: dict[AnswerName, LabelledScore] = {}
    for name in order:
        if name not in by_name:
            continue
        score = score_by_labels(by_name[name], verdicts)
        if score is None:
            break
        scores[name] = score
    if not scores:
        reason = f"no answer has labels of all its leaves: {go_on}"
        return LabelledAnswers(by, {}, reason)
    return LabelledAnswers(by, scores, passes=verdicts.passes)


def correction_by_labels(
    answers: Sequence[AuditedAnswer], audits: Path, agent: str
) -> Correction | NoCorrection | None:
    """Return the score corrected by whole answers that people labelled; ``None`` without labels."""
    labelled = labelled_answers(answers, audits, agent)
    if labelled is None:
        return None
    if labelled.reason is not None:
        return NoCorrection.for_reason(labelled.by, answers, labelled.reason)
    scores = labelled.scores

    def corrected(score_of: Callable[[LabelledScore], float]) -> tuple[CorrectedMean, float]:
        return correct_mean(answers, {name: score_of(one) for name, one in scores.items()})

    mean, weight = corrected(lambda one: one.middle)
    low = high = mean
    if any(one.low != one.high for one in scores.values()):
        low, _ = corrected(lambda one: one.low)
        high, _ = corrected(lambda one: one.high)
    changes: dict[str, list[float]] = defaultdict(list)
    for (task, _), one in scores.items():
        changes[task].append(WRONG_LABELS * one.if_all_wrong)
    on = f"on {mean.labels} of {counted(mean.population, 'answer')}"
    return Correction(
        by=f"{labelled.by} {on}",
        mean=mean,
        low=low,
        high=high,
        weight=weight,
        cells=cells_by_task(answers, labelled.passes),
        wrong_labels=fmean(map(fmean, changes.values())),
    )
