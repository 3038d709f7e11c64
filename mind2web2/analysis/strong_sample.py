"""``rejudge --sample``: a strong judge on a random part of the answers.

The sample corrects the score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mind2web2.analysis.audited import AuditedAnswer, audited_answers
from mind2web2.analysis.correction import Correction, NoCorrection
from mind2web2.analysis.correction_record import CorrectionFigures
from mind2web2.analysis.sample_basis import AnswerName, SampledFrom
from mind2web2.analysis.sample_correction import (
    SampleRecord,
    correction_by_sample,
    cost_of_sample,
    read_sample,
)
from mind2web2.errors import UsageError
from mind2web2.results.answers import TaskWork
from mind2web2.results.known_answers import agent_answers
from mind2web2.statistics.agreement import figures_of
from mind2web2.statistics.paired import Estimate
from mind2web2.statistics.sampled_answers import sampling_order
from mind2web2.utils.text import counted

# The reach of an interval that is narrow enough, for which figures say how many answers it takes.
NARROW = 0.02


@dataclass(frozen=True)
class Sampling:
    """How many answers are sampled, and by which seed."""

    size: int
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

    def without_result(self, size: int) -> int:
        """Return how many of the first answers have no score by the strong judge."""
        scored = {
            (one.task_id, one.answer_name.removesuffix(".md"))
            for one in agent_answers(self.folder, self.agent)
            if one.score is not None
        }
        return sum(name not in scored for name in self.order[:size])


def strong_sample(
    agent: str,
    judge: str,
    folder: Path,
    eval_results_root: Path,
    work: Sequence[TaskWork],
    sampling: Sampling,
) -> StrongSample:
    """Return the sample of an agent.

    Raises UsageError: it is larger than there are answers with a score.
    """
    names = [(task.task_id, one.name.removesuffix(".md")) for task in work for one in task.answers]
    if sampling.size > len(names):
        raise UsageError(
            f"--sample {sampling.size}: {agent} has {counted(len(names), 'answer')} with a score"
        )
    order = sampling_order(names, sampling.seed)
    return StrongSample(agent, judge, folder, eval_results_root, work, order, sampling)


@dataclass(frozen=True)
class JudgedSample:
    """The part of a sample that a command has judged.

    Args:
        status: the exit status.
        size: the answers in the sample, each with a score by the strong judge.
        failed: the answers on which the strong judge failed: no random choice, so that the rest is
            no sample.
        is_cut: the budget ended before the sample did. Long answers are judged last, so that those
            that it paid for are no random choice.
    """

    status: int
    size: int
    failed: int
    is_cut: bool


def judge_sample(
    sample: StrongSample, judge: Callable[[Sequence[TaskWork]], tuple[int, bool]]
) -> JudgedSample:
    """Judge the answers of a sample and write its record.

    Args:
        judge: judges work, and returns an exit status and whether the budget ended it; what was
            judged before costs nothing.
    """
    earlier = _earlier_record(sample)
    earlier_size = 0 if earlier is None else earlier.size
    # With all that was judged before: a run over some answers of a task replaces those of all.
    size = max(earlier_size, sample.sampling.size)
    status, is_cut = judge(sample.work_on(size))
    missing = sample.without_result(size)
    if missing:
        size = 0 if sample.without_result(earlier_size) else earlier_size
    _write_record(sample, size)
    return JudgedSample(status, size, 0 if is_cut else missing, is_cut)


def _earlier_record(sample: StrongSample) -> SampleRecord | None:
    """Return the record of what an earlier command judged of the same sample."""
    found = read_sample(sample.folder / sample.agent)
    if found is None or found.seed != sample.sampling.seed:
        return None
    return found if found.order == tuple(sample.order) else None


def _write_record(sample: StrongSample, size: int) -> None:
    basis = {one.name: one.basis for one in _answers(sample)}
    population = SampledFrom(
        order=tuple(sample.order), basis=tuple(basis.get(name) for name in sample.order)
    )
    record = SampleRecord.made_now(sample.judge, sample.sampling.seed, population, size)
    record.write(sample.folder / sample.agent)


def _answers(sample: StrongSample) -> list[AuditedAnswer]:
    found = audited_answers(sample.eval_results_root, sample.agent)
    wanted = set(sample.order)
    return [one for one in found if one.name in wanted]


def correction(sample: StrongSample) -> Correction | NoCorrection | None:
    """Return the corrected score or why there is none.

    ``None`` where no answer is in the sample.
    """
    return correction_by_sample(_answers(sample), sample.folder, sample.agent)


class SampleFigures(BaseModel):
    """The figures of a sample, as ``rejudge --sample --json`` prints them.

    Args:
        more_wanted: further answers for an interval that reaches no farther than ``NARROW``.
        without_result: further answers on which the strong judge failed.
        cost_of_all_usd: about what it would cost to judge all answers.
        wrong_passes: share of the results' passes that the strong judge fails.
    """

    model_config = ConfigDict(frozen=True)

    judge: str
    correction: CorrectionFigures
    more_wanted: int | None
    cost_usd: float | None
    cost_of_all_usd: float | None
    wrong_passes: Estimate
    wrong_failures: Estimate
    without_result: int = 0


class NoSampleFigures(BaseModel):
    """There is no corrected score.

    Args:
        reason: a budget that ended first, answers without a result, or results out of date.
    """

    model_config = ConfigDict(frozen=True)

    judge: str
    reason: str
    correction: None = None
    without_result: int = 0


Figures = SampleFigures | NoSampleFigures


def sample_figures(sample: StrongSample, judged: JudgedSample) -> Figures:
    """Return the figures of a sample."""
    found = correction(sample)
    if not isinstance(found, Correction):
        reason = f"too few answers of the sample have a score by {sample.judge}"
        if isinstance(found, NoCorrection):
            reason = found.reason
        elif judged.is_cut:
            reason = "--max_cost ended before the sample: go on with the same command, or take a smaller N"
        return NoSampleFigures(judge=sample.judge, reason=reason, without_result=judged.failed)
    drawn = set(sample.order[: judged.size])
    cost = cost_of_sample(sample.folder, sample.agent, drawn)
    figures = figures_of(found.cells)
    scale = found.mean.population / found.mean.labels
    return SampleFigures(
        judge=sample.judge,
        correction=found.figures(),
        more_wanted=found.mean.more_wanted(NARROW),
        cost_usd=None if cost is None else round(cost, 6),
        cost_of_all_usd=None if cost is None else round(cost * scale, 6),
        wrong_passes=figures.wrong_passes,
        wrong_failures=figures.wrong_failures,
        without_result=judged.failed,
    )
