"""Two agents' corrected scores over the same tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mind2web2.analysis.correction import Correction, NoCorrection, span
from mind2web2.analysis.correction_record import DIGITS, CorrectionFigures, CorrectionRoots, Ends
from mind2web2.analysis.corrections import correction_of
from mind2web2.errors import UsageError
from mind2web2.statistics.agreement import figures_of
from mind2web2.statistics.correction import CorrectedDifference, corrected_difference
from mind2web2.statistics.paired import Estimate, share_difference
from mind2web2.statistics.uncertainty import rounded
from mind2web2.utils.program import command_line


class CorrectedPair(BaseModel):
    """Two agents' corrected scores over the same tasks; ``compare --corrected --json`` prints it.

    Differences are the second minus the first.

    Args:
        wrong_passes: the difference of the judge's error rates by agent: a bias that could turn a
            ranking.
    """

    model_config = ConfigDict(frozen=True)

    agents: tuple[str, str]
    first: CorrectionFigures
    second: CorrectionFigures
    raw_difference: float
    corrected_difference: float | None
    these_tasks: Ends | None
    tasks_at_large: Ends | None
    wrong_passes: Estimate
    wrong_failures: Estimate


def corrected_pair(agents: tuple[str, str], first: Correction, second: Correction) -> CorrectedPair:
    """Compare two agents. Raises ValueError: their tasks differ."""
    one, other = figures_of(first.cells), figures_of(second.cells)
    corrected = _difference(first, second)
    return CorrectedPair(
        agents=agents,
        first=first.figures(),
        second=second.figures(),
        raw_difference=round(corrected.raw, DIGITS),
        corrected_difference=rounded(corrected.value, DIGITS),
        these_tasks=Ends.of(corrected.these_tasks),
        tasks_at_large=Ends.of(corrected.tasks_at_large),
        wrong_passes=share_difference(one.wrong_passes, other.wrong_passes),
        wrong_failures=share_difference(one.wrong_failures, other.wrong_failures),
    )


def corrected_pairs(
    roots: CorrectionRoots, folders: Mapping[str, Path], tasks: Collection[str]
) -> list[CorrectedPair]:
    """Return the corrected comparison of the first agent with each other one.

    Args:
        roots: of the command; each agent has results of its own folder.

    Raises:
        UsageError: an agent has neither labels nor a strong judge's sample that correct its score.
    """
    by_name = {}
    for name, folder in folders.items():
        one = correction_of(replace(roots, eval_results=folder.parent), folder.name, tasks)
        if one is None:
            label = command_line("view", folder.name, "--audit", "YOUR_NAME")
            sample = command_line(
                "rejudge", folder.name, "--judge_model", "STRONG", "--sample", "60"
            )
            raise UsageError(
                f"--corrected: {name} has no labels and no sample by a strong judge at these "
                f"tasks; make some with: {label}, or {sample}"
            )
        if isinstance(one, NoCorrection):
            raise UsageError(f"--corrected: {name} is not corrected by {one.by}: {one.reason}")
        by_name[name] = one
    first, *others = by_name
    return [corrected_pair((first, name), by_name[first], by_name[name]) for name in others]


def _difference(first: Correction, second: Correction) -> CorrectedDifference:
    """Return the difference.

    Its intervals allow for either verdict on leaves that nobody decides.
    """
    corrected = corrected_difference(first.mean, second.mean)
    least = corrected_difference(first.high, second.low)
    most = corrected_difference(first.low, second.high)
    return replace(
        corrected,
        these_tasks=span(least.these_tasks, most.these_tasks),
        tasks_at_large=span(least.tasks_at_large, most.tasks_at_large),
    )
