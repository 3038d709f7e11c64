"""All that the labels of an agent's audit say: each auditor, pairs of auditors, and the corrected score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from mind2web2.runs.audited import (
    JudgeQuality,
    audited_answers,
    between_auditors,
    judge_quality,
    label_verdicts,
)
from mind2web2.runs.corrected import CorrectedScore, corrected_score
from mind2web2.runs.drawn_labels import drawn_labels
from mind2web2.runs.labels import LabelFile, auditors
from mind2web2.statistics.agreement import Figures


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What labels say of a judge.

    Args:
        quality: by auditor, from blind labels.
        pairs: of auditors, with the number of leaves that both decided.
        score: corrected by the blind labels of all auditors that are a sample of all answers.
        not_counting: by auditor, why the labels do not correct the score.
        settled: with the labels of the second pass in place of the blind ones; ``None`` without any.
    """

    agent: str
    quality: Mapping[str, JudgeQuality]
    pairs: Mapping[tuple[str, str], tuple[int, Figures]]
    score: CorrectedScore | None
    not_counting: Mapping[str, str]
    settled: JudgeQuality | None
    settled_score: CorrectedScore | None

    def summary(self) -> dict[str, Any]:
        """Return it as ``mind2web2 audit --json`` prints it."""
        return {
            "agent": self.agent,
            "auditors": {name: _quality(found) for name, found in self.quality.items()},
            "between_auditors": [
                {
                    "auditors": [*names],
                    "leaves": shared,
                    **{
                        key: asdict(getattr(figures, key))
                        for key in ("agreement", "kappa", "ac1")
                    },
                }
                for names, (shared, figures) in self.pairs.items()
            ],
            "score": None if self.score is None else self.score.summary(),
            "not_counting": dict(self.not_counting),
            "second_pass": None
            if self.settled is None
            else {
                **_quality(self.settled),
                "score": None
                if self.settled_score is None
                else self.settled_score.summary(),
            },
        }


def _quality(found: JudgeQuality) -> dict[str, Any]:
    counts = {
        "labels": found.labels,
        "undecidable": found.undecidable,
        "stale": found.stale,
    }
    return counts | asdict(found.figures)


def audit_report(
    eval_results_root: Path, audits_root: Path, agent: str
) -> AuditReport | None:
    """Return what the labels of an agent say, ``None`` where there are none."""
    files = {
        name: LabelFile(audits_root, agent, name)
        for name in auditors(audits_root, agent)
    }
    blind = {name: file.blind() for name, file in files.items()}
    if not any(blind.values()):
        return None
    answers = audited_answers(eval_results_root, agent)
    drawn = drawn_labels(files, agent, answers)
    second = {name: file.second() for name, file in files.items()}
    settled = None
    settled_score = None
    if any(second.values()):
        settled = label_verdicts(
            answers, [{**blind[name], **second[name]} for name in files]
        )
        settled_labels = []
        for name, labels in drawn.by_auditor.items():
            again = {seen: second[name].get(seen, labels[seen]) for seen in labels}
            settled_labels.append(again)
        settled_score = corrected_score(
            answers, label_verdicts(answers, settled_labels)
        )
    return AuditReport(
        agent=agent,
        quality={
            name: judge_quality(answers, label_verdicts(answers, [labels]), len(labels))
            for name, labels in blind.items()
        },
        pairs={
            (one, other): between_auditors(answers, files[one], files[other])
            for one, other in combinations(files, 2)
        },
        score=corrected_score(
            answers, label_verdicts(answers, list(drawn.by_auditor.values()))
        ),
        not_counting=drawn.reasons,
        settled=None if settled is None else judge_quality(answers, settled),
        settled_score=settled_score,
    )
