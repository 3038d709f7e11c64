"""The labels of people that are a random sample of the leaves of some answers, and why others are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mind2web2.runs.audited import AuditedAnswer
from mind2web2.runs.labels import LabelFile, LabelledSample, Labels
from mind2web2.utils.program import program
from mind2web2.utils.text import counted


@dataclass(frozen=True, slots=True)
class DrawnLabels:
    """Labels from which the score of all these answers may be estimated.

    Args:
        by_auditor: blind labels that count.
        reasons: by auditor, why labels do not count, and what to do.
    """

    by_auditor: Mapping[str, Labels]
    reasons: Mapping[str, str]


def drawn_labels(
    files: Mapping[str, LabelFile], agent: str, answers: Sequence[AuditedAnswer]
) -> DrawnLabels:
    """Return the labels that were drawn from all of these answers, by auditor."""
    by_auditor: dict[str, Labels] = {}
    reasons: dict[str, str] = {}
    # Leaves behind gates are in no sample: each decides by itself.
    skipped = {leaf.name for one in answers for leaf in one.skipped}
    for name, file in files.items():
        samples = file.samples()
        lacking = [_lacking(one, answers) for one in samples]
        if lacking and all(lacking):
            again = f"`{program()} view {agent} --audit {name}`"
            reasons[name] = (
                f"{lacking[-1]}; label more leaves of all answers with {again}, and a larger --sample where "
                "all have labels"
            )
            continue
        counting = set(skipped)
        for one, reason in zip(samples, lacking, strict=True):
            if reason is None:
                counting |= one.reached
        labels = file.blind()
        by_auditor[name] = {
            seen: label for seen, label in labels.items() if seen[0] in counting
        }
    return DrawnLabels(by_auditor, reasons)


def _lacking(sample: LabelledSample, answers: Sequence[AuditedAnswer]) -> str | None:
    """Return why a sample is not one of all of these answers, ``None`` where it is."""
    if sample.drawn is not None:
        places = {(one.task, one.answer) for one in answers}
        others = places.difference(sample.drawn.drawn_from)
        if not others:
            return None
        return f"{counted(len(others), 'answer')} of {len(places)} came after the audit or were outside of it"
    # Labels of earlier versions do not tell from which answers they were drawn.
    tasks = {one.task for one in answers if one.leaves}
    unlabelled = tasks.difference(name.task for name in sample.reached)
    if not unlabelled:
        return None
    return f"{counted(len(unlabelled), 'task')} of {len(tasks)} may have been outside of the audit"
