"""``rejudge --sample``: a strong judge on a random part of the answers, and the score that it corrects."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.options import share
from mind2web2.errors import UsageError
from mind2web2.utils.text import counted

if TYPE_CHECKING:
    from mind2web2.runs.answers import TaskWork
    from mind2web2.runs.audited import AuditedAnswer
    from mind2web2.runs.corrections import AnswerName, Correction, CorrectionJson
    from mind2web2.statistics.paired import Estimate

AUTO = "auto"
TARGET = 0.02
# With fewer answers a sample does not know its own error.
_FIRST_SIZE = 30
# A later look adds at least and at most this share of the answers judged so far.
_LEAST_GROWTH, _MOST_GROWTH = 0.1, 1.0


def add_sample_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--sample``, ``--target`` and ``--seed``."""
    parser.add_argument(
        "--sample",
        metavar="N",
        type=_size,
        help="judge only N random answers, tasks in turn, by the judge named with --judge_model, and correct "
        "the score of the results by them; auto judges until the interval reaches no farther than --target",
    )
    parser.add_argument(
        "--target",
        metavar="REACH",
        type=share,
        default=TARGET,
        help="with --sample auto, how far the 95%% interval for these tasks may reach to either side "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of the sample; another one draws another sample (default: 0)",
    )


def _size(text: str) -> int | str:
    if text == AUTO:
        return AUTO
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number of answers nor {AUTO}"
        )
    return int(text)


@dataclass(frozen=True)
class Sampling:
    """How answers are sampled.

    Args:
        size: the number of answers, or ``auto``.
        target: the reach of the interval for these tasks with ``auto``.
    """

    size: int | str
    target: float
    seed: int


@dataclass(frozen=True)
class StrongSample:
    """An agent's sample: all answers in the order in which it takes them.

    Args:
        folder: the results root of the strong judge.
        judge: its name, with its parameters.
    """

    agent: str
    judge: str
    folder: Path
    eval_results_root: Path
    work: Sequence[TaskWork]
    order: Sequence[AnswerName]
    sampling: Sampling

    def work_on(self, size: int) -> list[TaskWork]:
        """Return the work on the first answers of the sample."""
        drawn = set(self.order[:size])
        chosen = [
            replace(
                task,
                answers=tuple(
                    one
                    for one in task.answers
                    if (task.task_id, one.name.removesuffix(".md")) in drawn
                ),
            )
            for task in self.work
        ]
        return [task for task in chosen if task.answers]

    def first_size(self) -> int:
        """Return how many answers are judged before the first look."""
        wanted = (
            self.sampling.size if isinstance(self.sampling.size, int) else _FIRST_SIZE
        )
        return min(wanted, len(self.order))

    def next_size(self, size: int, found: Correction | None) -> int | None:
        """Return how many answers are judged before the next look; ``None`` at the end."""
        if self.sampling.size != AUTO or size >= len(self.order):
            return None
        if found is not None and found.mean.is_within(self.sampling.target):
            return None
        least = max(1, round(_LEAST_GROWTH * size))
        most = round(_MOST_GROWTH * size)
        if found is None:
            more = most
        else:
            more = found.mean.more_wanted(self.sampling.target)
        return min(len(self.order), size + min(most, max(least, more)))


def strong_sample(
    agent: str,
    judge: str,
    folder: Path,
    eval_results_root: Path,
    work: Sequence[TaskWork],
    sampling: Sampling,
) -> StrongSample:
    """Return the sample of an agent. Raises UsageError: it is larger than there are answers with a score."""
    from mind2web2.statistics.sampled_answers import sampling_order

    names = [
        (task.task_id, one.name.removesuffix(".md"))
        for task in work
        for one in task.answers
    ]
    if isinstance(sampling.size, int) and sampling.size > len(names):
        raise UsageError(
            f"--sample {sampling.size}: {agent} has {counted(len(names), 'answer')} with a score"
        )
    order = sampling_order(names, sampling.seed)
    return StrongSample(agent, judge, folder, eval_results_root, work, order, sampling)


def judge_sample(
    sample: StrongSample, judge: Callable[[Sequence[TaskWork]], tuple[int, bool]]
) -> tuple[int, int]:
    """Judge the answers of a sample; return the exit status and how many were drawn.

    Args:
        judge: judges work, and returns an exit status and whether the budget ended it; what was judged
            before costs nothing.
    """
    from mind2web2.runs.corrections import SampleRecord

    size: int | None = sample.first_size()
    drawn, status, is_cut = 0, 0, False
    while size is not None and not is_cut and status in (0, 1):
        ended, is_cut = judge(sample.work_on(size))
        status = max(status, ended)
        # What a budget leaves out is not random, but where the order of the sample is cut is.
        drawn = _judged_without_gap(sample, size) if is_cut else size
        sampling = sample.sampling
        record = SampleRecord.made_now(
            sample.judge,
            sampling.seed,
            sample.order,
            drawn,
            sampling.target if sampling.size == AUTO else None,
        )
        record.write(sample.folder / sample.agent)
        size = sample.next_size(drawn, correction(sample))
    return status, drawn


def _judged_without_gap(sample: StrongSample, size: int) -> int:
    from mind2web2.runs.judgings import Judging

    scores = Judging.read(sample.folder, sample.agent).scores()
    judged = {(task, name.removesuffix(".md")) for task, name in scores}
    return next(
        (place for place, name in enumerate(sample.order[:size]) if name not in judged),
        size,
    )


def _answers(sample: StrongSample) -> list[AuditedAnswer]:
    from mind2web2.runs.audited import audited_answers

    found = audited_answers(sample.eval_results_root, sample.agent)
    wanted = set(sample.order)
    return [one for one in found if (one.task, one.answer) in wanted]


def correction(sample: StrongSample) -> Correction | None:
    """Return the corrected score, ``None`` before any answer has a score by the strong judge."""
    from mind2web2.runs.corrections import corrected_by_judge

    return corrected_by_judge(_answers(sample), sample.folder, sample.agent)


@dataclass(frozen=True)
class SampleFigures:
    """The figures of a sample, as ``rejudge --sample --json`` prints them.

    Args:
        more_wanted: further answers for an interval that reaches no farther than the target.
        cost_of_all_usd: about what it would cost to judge all answers.
        wrong_passes: share of the results' passes that the strong judge fails.
    """

    judge: str
    correction: CorrectionJson
    target: float
    more_wanted: int | None
    cost_usd: float | None
    cost_of_all_usd: float | None
    wrong_passes: Estimate
    wrong_failures: Estimate


@dataclass(frozen=True)
class NoSampleFigures:
    """No answer of the sample has a score by the strong judge."""

    judge: str
    correction: None = None


Figures = SampleFigures | NoSampleFigures


def sample_figures(sample: StrongSample, drawn: int) -> Figures:
    """Return the figures of a sample of which so many answers were drawn."""
    from mind2web2.runs.corrections import cost_of_sample
    from mind2web2.statistics.agreement import figures_of

    found = correction(sample)
    if found is None:
        return NoSampleFigures(sample.judge)
    cost = cost_of_sample(sample.folder, sample.agent, set(sample.order[:drawn]))
    figures = figures_of(found.cells)
    scale = found.mean.population / found.mean.labels
    return SampleFigures(
        judge=sample.judge,
        correction=found.summary(),
        target=sample.sampling.target,
        more_wanted=found.mean.more_wanted(sample.sampling.target),
        cost_usd=None if cost is None else round(cost, 6),
        cost_of_all_usd=None if cost is None else round(cost * scale, 6),
        wrong_passes=figures.wrong_passes,
        wrong_failures=figures.wrong_failures,
    )


def sample_lines(agent: str, found: Figures) -> Iterator[str]:
    """Yield the figures, one line each."""
    if isinstance(found, NoSampleFigures):
        yield f"{agent}: no answer of the sample has a score by {found.judge}."
        return
    corrected = found.correction
    value = "unknown with fewer than six tasks"
    if corrected["corrected"] is not None:
        value = f"{corrected['corrected']:.4f}"
    yield (
        f"{agent}: partial completion by the results {corrected['raw']:.4f}, corrected {value}; 95% interval "
        f"for these tasks {_interval(corrected['these_tasks'])}, for tasks at large "
        f"{_interval(corrected['tasks_at_large'])}."
    )
    yield (
        f"{agent}: {found.judge} judged {corrected['sampled']} of {counted(corrected['of'], 'answer')}"
        f"{_price(found)}; weight of the results' judge {corrected['weight_of_judge']:.2f}."
    )
    if found.more_wanted:
        yield f"{agent}: for +-{found.target:g} judge {found.more_wanted} more."
    yield (
        f"{agent}: the results pass wrongly {_rate(found.wrong_passes)} of their passes and fail wrongly "
        f"{_rate(found.wrong_failures)} of their failures, by {found.judge}."
    )


def _price(found: SampleFigures) -> str:
    if found.cost_usd is None:
        return ""
    return f" for ${found.cost_usd:.2f} instead of about ${found.cost_of_all_usd:.2f} for all"


def _interval(found: dict[str, float] | None) -> str:
    if found is None:
        return "unknown"
    return f"{found['low']:.4f} to {found['high']:.4f}"


def _rate(found: Estimate) -> str:
    if found.value is None:
        return "an unknown share"
    if found.low is None:
        return f"{found.value:.1%}"
    return f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})"
