"""Raw and corrected scores side by side.

The commands ``metrics``, ``compare`` and ``rejudge`` print them.
"""

from __future__ import annotations

from collections.abc import Iterator

from mind2web2.analysis.corrected_pairs import CorrectedPair
from mind2web2.analysis.correction_record import CorrectionFigures, Ends
from mind2web2.analysis.strong_sample import NARROW, Figures, NoSampleFigures, SampleFigures
from mind2web2.statistics.paired import Estimate
from mind2web2.utils.text import (
    counted,
    dollars,
    number,
    percent,
    points,
    points_range,
    points_within,
)


def correction_lines(correction: CorrectionFigures) -> Iterator[str]:
    """Yield the raw score and the corrected one with its intervals.

    Where there is not a corrected score, the reason stands in its place.
    """
    raw = f"Partial completion by the judge {percent(correction.raw)}"
    if correction.reason is not None:
        yield f"{raw}, not corrected by {correction.by}: {correction.reason}."
        return
    if correction.corrected is None:
        yield f"{raw}, corrected by {correction.by}: unknown with fewer than six tasks."
        return
    yield (
        f"{raw}, corrected by {correction.by}: {percent(correction.corrected)}; 95% interval for these tasks "
        f"{_interval(correction.these_tasks)}, for tasks at large {_interval(correction.tasks_at_large)}."
    )
    if correction.to_halve:
        yield (
            "To halve the interval for these tasks, judge "
            f"{counted(correction.to_halve, 'more answer')}."
        )
    if correction.if_undecidable is not None:
        low, high = correction.if_undecidable
        yield (
            f"If all undecidable leaves were not supported, it would be {percent(low)}; if all "
            f"were supported, {percent(high)}."
        )
    if correction.if_labels_are_wrong is not None:
        wrong = percent(correction.if_labels_are_wrong)
        yield (
            f"If one label in twenty is wrong, the corrected score is about {wrong}. The "
            "intervals do not include this."
        )


def pair_lines(pair: CorrectedPair) -> Iterator[str]:
    """Yield the corrected comparison of two agents, one line each."""
    first, second = pair.agents
    for name, correction in zip(pair.agents, (pair.first, pair.second), strict=True):
        for text in correction_lines(correction):
            yield f"{name}: {text}"
    if pair.corrected_difference is None:
        corrected = "no corrected value, as a sample has fewer than six tasks"
    else:
        corrected = f"corrected {points(pair.corrected_difference)}"
    yield (
        f"Difference of {second} from {first} by the judge {points(pair.raw_difference)}, "
        f"{corrected}; 95% interval for these tasks {_reach(pair.these_tasks)}, for tasks at large "
        f"{_reach(pair.tasks_at_large)}."
    )
    yield (
        f"Errors of the judge, {second} less {first}: passed wrongly {_rate(pair.wrong_passes)}, "
        f"failed wrongly {_rate(pair.wrong_failures)}{_bias(pair)}."
    )


def _bias(pair: CorrectedPair) -> str:
    rates = (pair.wrong_passes, pair.wrong_failures)
    is_biased = any(
        one.low is not None and one.high is not None and not one.low <= 0 <= one.high
        for one in rates
    )
    return ", so the judge errs differently on the two agents" if is_biased else ""


def _interval(ends: Ends | None) -> str:
    return "unknown" if ends is None else f"{percent(ends.low)} to {percent(ends.high)}"


def _reach(ends: Ends | None) -> str:
    return "unknown" if ends is None else points_range(ends.low, ends.high)


def _rate(estimate: Estimate) -> str:
    if estimate.value is None:
        return "unknown"
    return points_within(estimate.value, estimate.low, estimate.high)


def sample_lines(agent: str, figures: Figures) -> Iterator[str]:
    """Yield the figures, one line each."""
    if figures.without_result:
        failed = counted(figures.without_result, "answer")
        yield (
            f"{agent}: {figures.judge} failed on {failed} of the sample. The rest is not a random "
            "choice, so it does not correct the score. The same command asks for the failed ones "
            "again."
        )
    if isinstance(figures, NoSampleFigures):
        yield f"{agent}: no corrected score: {figures.reason}."
        return
    corrected = figures.correction
    for text in correction_lines(corrected):
        yield f"{agent}: {text}"
    yield (
        f"{agent}: {figures.judge} judged {corrected.sampled} of {counted(corrected.of, 'answer')}"
        f"{_price(figures)}; weight of the results' judge {number(corrected.weight_of_judge)}."
    )
    if figures.more_wanted and corrected.corrected is not None:
        yield (
            f"{agent}: for an interval of {100 * NARROW:g} points to either side, judge "
            f"{counted(figures.more_wanted, 'more answer')}."
        )
    yield (
        f"{agent}: according to {figures.judge}, {figures.wrong_passes} of the passes are wrong, "
        f"and {figures.wrong_failures} of the failures."
    )


def _price(figures: SampleFigures) -> str:
    if figures.cost_usd is None or figures.cost_of_all_usd is None:
        return ""
    return f" for {dollars(figures.cost_usd)} instead of about {dollars(figures.cost_of_all_usd)} for all"
