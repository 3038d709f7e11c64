"""All that the labels of an agent's audit say.

The report covers each auditor, pairs of auditors, and the corrected score.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mind2web2.analysis.audited import (
    JudgeQuality,
    audited_answers,
    between_auditors,
    judge_quality,
    label_verdicts,
)
from mind2web2.analysis.correction_record import CorrectionFigures
from mind2web2.analysis.label_correction import correction_by_labels
from mind2web2.analysis.labels import labels_by_auditor
from mind2web2.statistics.agreement import Figures


class AuditorFigures(BaseModel):
    """One auditor's blind labels and the judge."""

    model_config = ConfigDict(frozen=True)

    auditor: str
    quality: JudgeQuality


class AuditorPair(BaseModel):
    """How far two auditors agree on the leaves that both decided."""

    model_config = ConfigDict(frozen=True)

    auditors: tuple[str, str]
    leaves: int
    figures: Figures


class AuditReport(BaseModel):
    """The figures of a judge by labels, as ``mind2web2 metrics --audit --json`` prints them.

    Args:
        score: corrected by the whole answers that auditors labelled.
    """

    model_config = ConfigDict(frozen=True)

    agent: str
    auditors: tuple[AuditorFigures, ...]
    between_auditors: tuple[AuditorPair, ...]
    score: CorrectionFigures | None


def audit_report(eval_results_root: Path, audits_root: Path, agent: str) -> AuditReport | None:
    """Return what the labels of an agent say, ``None`` where there are none."""
    blind = labels_by_auditor(audits_root, agent)
    if not blind:
        return None
    answers = audited_answers(eval_results_root, agent)
    by_auditor = []
    for name, labels in blind.items():
        verdicts = label_verdicts(answers, [labels])
        quality = judge_quality(answers, verdicts, len(labels))
        by_auditor.append(AuditorFigures(auditor=name, quality=quality))
    pairs = []
    for one, other in combinations(blind, 2):
        leaves, figures = between_auditors(answers, blind[one], blind[other])
        pairs.append(AuditorPair(auditors=(one, other), leaves=leaves, figures=figures))
    correction = correction_by_labels(answers, audits_root, agent) if answers else None
    return AuditReport(
        agent=agent,
        auditors=tuple(by_auditor),
        between_auditors=tuple(pairs),
        score=None if correction is None else correction.figures(),
    )
