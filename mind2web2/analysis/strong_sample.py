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

AUTO = "auto"
TARGET = 0.02
# With fewer answers a sample does not know its own error.
_FIRST_SIZE = 30
# A later look adds at least and at most this share of the answers judged so far.
_LEAST_GROWTH, _MAX_GROWTH = 0.1, 1.0
# With a budget, the sample grows by whole parts: a tenth of it, and as many answers as an interval
# takes.
_LEAST_PART, _SHARE_OF_PART = 6, 0.1


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
        wanted = self.sampling.size if isinstance(self.sampling.size, int) else _FIRST_SIZE
        return min(wanted, len(self.order))

    def parts(self, start: int, size: int, has_budget: bool) -> list[int]:
        """Return the sizes by which the sample grows to ``size``.

        If a budget cuts a part short, the rest is not random, because long answers are judged last.
        The sample then ends before that part.
        """
        if not has_budget:
            return [size]
        step = max(_LEAST_PART, round(_SHARE_OF_PART * size))
        return [*range(start + step, size, step), size]

    def without_result(self, size: int) -> int:
        """Return how many of the first answers have no score by the strong judge."""
        scored = {
            (one.task_id, one.answer_name.removesuffix(".md"))
            for one in agent_answers(self.folder, self.agent)
            if one.score is not None
        }
        return sum(name not in scored for name in self.order[:size])

    def next_size(self, size: int, found: Correction | None) -> int | None:
        """Return how many answers are judged before the next look; ``None`` at the end."""
        if self.sampling.size != AUTO or size >= len(self.order):
            return None
        # More answers do not help where those that are judged correct nothing.
        if found is None or found.mean.is_within(self.sampling.target):
            return None
        least = max(1, round(_LEAST_GROWTH * size))
        most = round(_MAX_GROWTH * size)
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
    """Return the sample of an agent.

    Raises UsageError: it is larger than there are answers with a score.
    """
    names = [(task.task_id, one.name.removesuffix(".md")) for task in work for one in task.answers]
    if isinstance(sampling.size, int) and sampling.size > len(names):
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
    """

    status: int
    size: int
    failed: int


def judge_sample(
    sample: StrongSample,
    judge: Callable[[Sequence[TaskWork]], tuple[int, bool]],
    has_budget: bool,
) -> JudgedSample:
    """Judge the answers of a sample and write its record.

    Args:
        judge: judges work, and returns an exit status and whether the budget ended it; what was
            judged before costs nothing.
    """
    earlier = _earlier_record(sample)
    asked = 0 if earlier is None else earlier.size
    status, failed, recorded = 0, 0, 0
    size: int | None = max(asked, sample.first_size())
    is_ended = False
    while size is not None and not is_ended:
        for part in sample.parts(asked, size, has_budget):
            # With all that was judged before: a run over some answers of a task replaces those of
            # all.
            ended, is_cut = judge(sample.work_on(part))
            status = max(status, ended)
            missing = sample.without_result(part)
            is_ended = is_cut or ended not in (0, 1)
            if not is_ended:
                failed = missing
            if not missing or not is_ended:
                asked = part
            if is_ended or failed:
                break
        is_ended = is_ended or failed > 0
        recorded = _write_record(sample, earlier, asked)
        found = correction(sample)
        size = sample.next_size(recorded, found if isinstance(found, Correction) else None)
    return JudgedSample(status, recorded, failed)


def _earlier_record(sample: StrongSample) -> SampleRecord | None:
    """Return the record of what an earlier command judged of the same sample."""
    found = read_sample(sample.folder / sample.agent)
    if found is None or found.seed != sample.sampling.seed:
        return None
    return found if found.order == tuple(sample.order) else None


def _write_record(sample: StrongSample, earlier: SampleRecord | None, asked: int) -> int:
    """Write the record and return the size of the sample.

    It has all answers that were asked, or else those of the earlier sample, if they all have a
    result. It never has a part of them, because the answers before the first failure are not a
    random choice.
    """
    sampling = sample.sampling
    target = sampling.target if sampling.size == AUTO else None
    size = 0 if sample.without_result(asked) else asked
    if earlier is not None:
        if size <= earlier.size and not sample.without_result(earlier.size):
            size = earlier.size
            target = earlier.target
        elif target is None:
            # The earlier sample may have ended where its error was small enough.
            target = earlier.target
    basis = {one.name: one.basis for one in _answers(sample)}
    population = SampledFrom(
        order=tuple(sample.order), basis=tuple(basis.get(name) for name in sample.order)
    )
    record = SampleRecord.made_now(sample.judge, sampling.seed, population, size, target)
    record.write(sample.folder / sample.agent)
    return size


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
        more_wanted: further answers for an interval that reaches no farther than the target.
        without_result: further answers on which the strong judge failed.
        cost_of_all_usd: about what it would cost to judge all answers.
        wrong_passes: share of the results' passes that the strong judge fails.
    """

    model_config = ConfigDict(frozen=True)

    judge: str
    correction: CorrectionFigures
    target: float
    more_wanted: int | None
    cost_usd: float | None
    cost_of_all_usd: float | None
    wrong_passes: Estimate
    wrong_failures: Estimate
    without_result: int = 0


class NoSampleFigures(BaseModel):
    """There is no corrected score.

    Args:
        reason: a budget that ended before the first part, answers without a result, or results out
            of date.
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
        return NoSampleFigures(judge=sample.judge, reason=reason, without_result=judged.failed)
    drawn = set(sample.order[: judged.size])
    cost = cost_of_sample(sample.folder, sample.agent, drawn)
    figures = figures_of(found.cells)
    scale = found.mean.population / found.mean.labels
    return SampleFigures(
        judge=sample.judge,
        correction=found.figures(),
        target=sample.sampling.target,
        more_wanted=found.mean.more_wanted(sample.sampling.target),
        cost_usd=None if cost is None else round(cost, 6),
        cost_of_all_usd=None if cost is None else round(cost * scale, 6),
        wrong_passes=figures.wrong_passes,
        wrong_failures=figures.wrong_failures,
        without_result=judged.failed,
    )
