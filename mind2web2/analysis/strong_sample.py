"""``rejudge --sample``: a strong judge on a random part of the answers.

The sample corrects the score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from mind2web2.analysis.audited import AuditedAnswer, audited_answers
from mind2web2.analysis.correction import Correction, NoCorrection, basis_of
from mind2web2.analysis.correction_record import CorrectionFigures
from mind2web2.analysis.sample_basis import AnswerName, SampledFrom
from mind2web2.analysis.sample_correction import (
    SampleRecord,
    correction_by_sample,
    cost_of_sample,
    read_sample,
)
from mind2web2.errors import UsageError
from mind2web2.results.answers import TaskWork, chosen_work
from mind2web2.results.known_answers import agent_answers
from mind2web2.results.scored_answer import scored_answers
from mind2web2.statistics.agreement import figures_of
from mind2web2.statistics.paired import Estimate
from mind2web2.statistics.sampled_answers import sampling_order
from mind2web2.statistics.uncertainty import rounded
from mind2web2.utils.text import counted, dollars, number

# The reach of an interval that is narrow enough, for which figures say how many answers it takes.
NARROW = 0.02


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

    def lines(self, agent: str) -> Iterator[str]:
        """Yield the figures, one line each."""
        yield from _failed_lines(agent, self.judge, self.without_result)
        corrected, price = self.correction, ""
        for text in corrected.lines():
            yield f"{agent}: {text}"
        if self.cost_usd is not None and self.cost_of_all_usd is not None:
            all_answers = dollars(self.cost_of_all_usd)
            price = f" for {dollars(self.cost_usd)} instead of about {all_answers} for all"
        yield (
            f"{agent}: {self.judge} judged {corrected.sampled} of "
            f"{counted(corrected.of, 'answer')}{price}; weight of the results' judge "
            f"{number(corrected.weight_of_judge)}."
        )
        if self.more_wanted and corrected.corrected is not None:
            yield (
                f"{agent}: for an interval of {100 * NARROW:g} points to either side, judge "
                f"{counted(self.more_wanted, 'more answer')}."
            )
        yield (
            f"{agent}: according to {self.judge}, {self.wrong_passes} of the passes are wrong, "
            f"and {self.wrong_failures} of the failures."
        )


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

    def lines(self, agent: str) -> Iterator[str]:
        """Yield why there is none, one line each."""
        yield from _failed_lines(agent, self.judge, self.without_result)
        yield f"{agent}: no corrected score: {self.reason}."


def _failed_lines(agent: str, judge: str, answers: int) -> Iterator[str]:
    if answers:
        yield (
            f"{agent}: {judge} failed on {counted(answers, 'answer')} of the sample. The rest is "
            "not a random choice, so it does not correct the score. The same command asks for "
            "the failed ones again."
        )


Figures = SampleFigures | NoSampleFigures


@dataclass(frozen=True)
class StrongSample:
    """An agent's sample: all answers in the order in which it takes them.

    Args:
        folder: the results root of the strong judge.
        judge: its name, with its parameters.
        size: the answers that are wanted in the sample.
        seed: another seed draws another sample.
    """

    agent: str
    judge: str
    folder: Path
    eval_results_root: Path
    work: Sequence[TaskWork]
    order: Sequence[AnswerName]
    size: int
    seed: int

    @classmethod
    def draw(
        cls,
        agent: str,
        judge: str,
        folder: Path,
        eval_results_root: Path,
        work: Sequence[TaskWork],
        *,
        size: int,
        seed: int,
    ) -> Self:
        """Return the sample of an agent.

        Raises UsageError: it is larger than there are answers with a score.
        """
        names = [
            (task_id, name.removesuffix(".md")) for task in work for task_id, name in task.places
        ]
        if size > len(names):
            raise UsageError(
                f"--sample {size}: {agent} has {counted(len(names), 'answer')} with a score"
            )
        order = sampling_order(names, seed)
        return cls(agent, judge, folder, eval_results_root, work, order, size, seed)

    def work_on(self, size: int) -> list[TaskWork]:
        """Return the work on the first answers of the sample."""
        drawn = {(task, f"{answer}.md") for task, answer in self.order[:size]}
        return chosen_work(self.work, drawn)

    def judged_by(
        self, judge: Callable[[Sequence[TaskWork]], tuple[int, bool]]
    ) -> tuple[int, Figures]:
        """Judge the answers of the sample, write its record, and return status and figures.

        Args:
            judge: judges work, and returns an exit status and whether the budget ended it; what
                was judged before costs nothing.
        """
        earlier = self._earlier_record()
        earlier_size = 0 if earlier is None else earlier.size
        # With all that was judged before: a run over some answers of a task replaces those of all.
        size = max(earlier_size, self.size)
        status, is_cut = judge(self.work_on(size))
        missing = self._without_result(size)
        if missing:
            size = 0 if self._without_result(earlier_size) else earlier_size
        self._write_record(size)
        # Failures are no random choice, so that the rest is no sample. The budget is no failure.
        return status, self._figures(size, failed=0 if is_cut else missing, is_cut=is_cut)

    def _without_result(self, size: int) -> int:
        """Return how many of the first answers have no score by the strong judge."""
        scored = {
            (one.task_id, one.answer_name.removesuffix(".md"))
            for one in scored_answers(agent_answers(self.folder, self.agent))
        }
        return sum(name not in scored for name in self.order[:size])

    def _earlier_record(self) -> SampleRecord | None:
        """Return the record of what an earlier command judged of the same sample."""
        record = read_sample(self.folder / self.agent)
        same = (self.seed, tuple(self.order))
        return record if record is not None and (record.seed, record.order) == same else None

    def _write_record(self, size: int) -> None:
        basis = basis_of(self._answers())
        population = SampledFrom(
            order=tuple(self.order), basis=tuple(basis.get(name) for name in self.order)
        )
        record = SampleRecord.made_now(self.judge, self.seed, population, size)
        record.write(self.folder / self.agent)

    def _answers(self) -> list[AuditedAnswer]:
        answers = audited_answers(self.eval_results_root, self.agent)
        wanted = set(self.order)
        return [one for one in answers if one.name in wanted]

    def _figures(self, size: int, *, failed: int, is_cut: bool) -> Figures:
        """Return the figures of the first answers.

        Args:
            is_cut: the budget ended before the sample did. Long answers are judged last, so that
                those that it paid for are no random choice.
        """
        correction = correction_by_sample(self._answers(), self.folder, self.agent)
        if not isinstance(correction, Correction):
            reason = f"too few answers of the sample have a score by {self.judge}"
            if isinstance(correction, NoCorrection):
                reason = correction.reason
            elif is_cut:
                reason = (
                    "--max_cost ended before the sample: go on with the same command, or take a "
                    "smaller N"
                )
            return NoSampleFigures(judge=self.judge, reason=reason, without_result=failed)
        cost = cost_of_sample(self.folder, self.agent, set(self.order[:size]))
        figures = figures_of(correction.cells)
        scale = correction.mean.population / correction.mean.labels
        return SampleFigures(
            judge=self.judge,
            correction=correction.figures(),
            more_wanted=correction.mean.more_wanted(NARROW),
            cost_usd=rounded(cost, 6),
            cost_of_all_usd=None if cost is None else round(cost * scale, 6),
            wrong_passes=figures.wrong_passes,
            wrong_failures=figures.wrong_failures,
            without_result=failed,
        )
