"""The corrected score of an agent.

It rests on whole answers that people labelled, or else on those that a strong judge judged.
"""

from __future__ import annotations

from collections.abc import Collection

from mind2web2.analysis.audited import audited_answers
from mind2web2.analysis.correction import Correction, NoCorrection
from mind2web2.analysis.correction_record import CorrectionFigures, CorrectionRoots
from mind2web2.analysis.label_correction import correction_by_labels
from mind2web2.analysis.labels import auditors
from mind2web2.analysis.sample_correction import correction_by_sample, sample_folders


def corrected_figures(
    roots: CorrectionRoots, agent: str, tasks: Collection[str] | None
) -> CorrectionFigures | None:
    """Return ``correction_of`` as it is published."""
    correction = correction_of(roots, agent, tasks)
    return None if correction is None else correction.figures()


def correction_of(
    roots: CorrectionRoots, agent: str, tasks: Collection[str] | None
) -> Correction | NoCorrection | None:
    """Return the corrected score over some tasks.

    It is ``None`` without labels and without a strong sample.

    Labels of people count before a strong judge, as far as they are enough for any statement.
    """
    names = auditors(roots.audits, agent)
    samples = sample_folders(roots.rejudged, agent)
    if not names and not samples:
        return None
    answers = audited_answers(roots.eval_results, agent, tasks)
    if not answers:
        return None
    attempts = [correction_by_labels(answers, roots.audits, agent)]
    attempts += [correction_by_sample(answers, folder, agent) for folder in samples]
    known: list[Correction | NoCorrection] = list(filter(None, attempts))
    return min(known, key=_rank, default=None)


def _rank(one: Correction | NoCorrection) -> int:
    """Return which of several counts, the least first."""
    if isinstance(one, NoCorrection):
        return 1
    # A reason says what to do; a sample that is too small does not.
    return 0 if one.mean.is_enough else 2
