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
    percent_within,
    points,
    points_range,
    points_within,
)


def correction_lines(found: CorrectionFigures) -> Iterator[str]:
    """Yield the raw score and the corrected one with its intervals.

    Where there is not a corrected score, the reason stands in its place.
    """
    raw = f"Partial completion by the judge {percent(found.raw)}"
    if found.reason is not None:
        yield f"{raw}, not corrected by {found.by}: {found.reason}."
        return
    if found.corrected is None:
        yield f"{raw}, corrected by {found.by}: unknown with fewer than six tasks."
        return
    yield (
        f"{raw}, corrected by {found.by}: {percent(found.corrected)}; 95% interval for these tasks "
        f"{_interval(found.these_tasks)}, for tasks at large {_interval(found.tasks_at_large)}."
    )
    if found.to_halve:
        yield (
            "To halve the interval for these tasks, judge "
            f"{counted(found.to_halve, 'more answer')}."
        )
    if found.if_undecidable is not None:
        low, high = found.if_undecidable
        yield (
            f"If all undecidable leaves were not supported, it would be {percent(low)}; if all "
            f"were supported, {percent(high)}."
        )
    if found.if_labels_are_wrong is not None:
        wrong = percent(found.if_labels_are_wrong)
        yield (
            f"If one label in twenty is wrong, the corrected score is about {wrong}. The "
            "intervals do not include this."
        )


def pair_lines(pair: CorrectedPair) -> Iterator[str]:
    """Yield the corrected comparison of two agents, one line each."""
    first, second = pair.agents
    for name, own in zip(pair.agents, (pair.first, pair.second), strict=True):
        for text in correction_lines(own):
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


def _interval(found: Ends | None) -> str:
    return "unknown" if found is None else f"{percent(found.low)} to {percent(found.high)}"


def _reach(found: Ends | None) -> str:
    return "unknown" if found is None else points_range(found.low, found.high)


def _rate(found: Estimate) -> str:
    if found.value is None:
        return "unknown"
    return points_within(found.value, found.low, found.high)


def sample_lines(agent: str, found: Figures) -> Iterator[str]:
    """Yield the figures, one line each."""
    if found.without_result:
        failed = counted(found.without_result, "answer")
        yield (
            f"{agent}: {found.judge} failed on {failed} of the sample. The rest is not a random "
            "choice, so it does not correct the score. The same command asks for the failed ones "
            "again."
        )
    if isinstance(found, NoSampleFigures):
        yield f"{agent}: no corrected score: {found.reason}."
        return
    corrected = found.correction
    for text in correction_lines(corrected):
        yield f"{agent}: {text}"
    yield (
        f"{agent}: {found.judge} judged {corrected.sampled} of {counted(corrected.of, 'answer')}"
        f"{_price(found)}; weight of the results' judge {number(corrected.weight_of_judge)}."
    )
    if found.more_wanted and corrected.corrected is not None:
        yield (
            f"{agent}: for an interval of {100 * NARROW:g} points to either side, judge "
            f"{counted(found.more_wanted, 'more answer')}."
        )
    yield (
        f"{agent}: according to {found.judge}, {_share(found.wrong_passes)} of the passes are "
        f"wrong, and {_share(found.wrong_failures)} of the failures."
    )


def _price(found: SampleFigures) -> str:
    if found.cost_usd is None or found.cost_of_all_usd is None:
        return ""
    return (
        f" for {dollars(found.cost_usd)} instead of about {dollars(found.cost_of_all_usd)} for all"
    )


def _share(found: Estimate) -> str:
    return percent_within(found.value, found.low, found.high)
