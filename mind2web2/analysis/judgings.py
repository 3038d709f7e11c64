"""How far several judgments of the same answers agree: one judge's, or two judges'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from mind2web2.analysis.audited import audited_answers, judged_leaves
from mind2web2.analysis.labels import LeafName
from mind2web2.analysis.sample_basis import AnswerName
from mind2web2.analysis.score_matrix import judges_of
from mind2web2.results.known_answers import agent_answers
from mind2web2.results.scored_answer import scored_by_judge
from mind2web2.statistics.agreement import Cells, figures_of, share_by_task
from mind2web2.statistics.paired import Estimate
from mind2web2.statistics.uncertainty import rounded
from mind2web2.statistics.variance import VarianceFigures, nested_variance
from mind2web2.utils.text import counted, number, percent

Name = TypeVar("Name")
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Judging:
    """An agent's answers as they were judged once.

    Args:
        judges: of the answers that a judge scored.
        scores: by answer.
        passed: the judge's verdicts by leaf.
    """

    judges: str
    scores: Mapping[AnswerName, float]
    passed: Mapping[LeafName, bool]

    @classmethod
    def read(cls, eval_results_root: Path, agent_name: str) -> Judging:
        """Return an agent's newest results."""
        judged = scored_by_judge(agent_answers(eval_results_root, agent_name))
        answers = audited_answers(eval_results_root, agent_name)
        return cls(
            "; ".join(sorted(judges_of(judged))),
            {one.name: one.score for one in answers},
            judged_leaves(answers),
        )


@dataclass(frozen=True, slots=True)
class Repeatability:
    """How far one judge agrees with itself, as ``mind2web2 rejudge --json`` prints it.

    Args:
        answers: how many have a score in each judgment.
        means: partial completion by each judgment.
        leaves: how many were decided every time.
        flip_rate: the chance that two judgments of a leaf differ.
        ever_flipped: leaves whose judgments are not alike.
    """

    answers: int
    means: list[float]
    variance: VarianceFigures | None
    judge_share_of_variance: float | None
    leaves: int
    flip_rate: Estimate
    ever_flipped: int

    def lines(self, judge: str) -> Iterator[str]:
        """Yield the figures in sentences."""
        means = ", ".join(map(percent, self.means))
        yield (
            f"partial completion of {counted(self.answers, 'answer')}, judged "
            f"{counted(len(self.means), 'time')} by {judge}: {means}."
        )
        yield (
            f"two judgments of a leaf differ at {self.flip_rate}: of {counted(self.leaves, 'leaf')} "
            f"decided every time, {self.ever_flipped} of them not alike."
        )


def repeatability(judgings: Sequence[Judging]) -> Repeatability:
    """Return how far the judgings of one judge agree."""
    by_task = _scores_by_task(judgings)
    leaves = _shared([judging.passed for judging in judgings])
    rows: dict[str, tuple[float, float]] = {}
    ever = 0
    for leaf in leaves:
        passed = sum(judging.passed[leaf] for judging in judgings)
        ever += 0 < passed < len(judgings)
        # The share of pairs of judgments that differ.
        flipped = passed * (len(judgings) - passed) / (len(judgings) * (len(judgings) - 1) / 2)
        flips, count = rows.get(leaf.task, (0.0, 0.0))
        rows[leaf.task] = flips + flipped, count + 1
    variance = nested_variance(list(by_task.values()))
    share = None if variance is None else variance.judge_share()
    return Repeatability(
        answers=sum(map(len, by_task.values())),
        means=[round(mean, 4) for mean in _means(by_task)],
        variance=None if variance is None else variance.figures(),
        judge_share_of_variance=rounded(share, 6),
        leaves=len(leaves),
        flip_rate=share_by_task(list(rows.values())),
        ever_flipped=ever,
    )


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """Two judges on the leaves that both decided, as ``mind2web2 rejudge --json`` prints it.

    Args:
        only_first: leaves that only the first judge passes.
        means: partial completion by either judge, ``None`` without an answer that both scored.
        examples: leaves with different verdicts, as ``task/answer/leaf``.
    """

    leaves: int
    only_first: int
    only_second: int
    agreement: Estimate
    kappa: Estimate
    ac1: Estimate
    means: list[float] | None
    examples: list[str]

    def lines(self, judges: tuple[str, str]) -> Iterator[str]:
        """Yield the figures in sentences."""
        of_results, other = judges
        kappa = self.kappa.in_words(number, "unknown")
        ac1 = self.ac1.in_words(number, "unknown")
        yield (
            f"{other} agrees with the results ({of_results}) at {self.agreement} of "
            f"{counted(self.leaves, 'leaf')}; kappa {kappa}, AC1 {ac1}."
        )
        such = f", such as {', '.join(self.examples)}" if self.examples else ""
        yield (
            f"only the results pass {self.only_first}, only {other} passes "
            f"{self.only_second}{such}."
        )
        if self.means is not None:
            by_results, by_other = map(percent, self.means)
            yield f"partial completion {by_results}, by {other} {by_other}."


def judge_agreement(first: Judging, second: Judging) -> JudgeAgreement:
    """Compare two judges on the leaves that both decided."""
    by_task: dict[str, Cells] = {}
    leaves = _shared([first.passed, second.passed])
    for leaf in leaves:
        verdicts = first.passed[leaf], second.passed[leaf]
        by_task.setdefault(leaf.task, Cells()).add(*verdicts)
    differing = [leaf for leaf in leaves if first.passed[leaf] != second.passed[leaf]]
    only_first = sum(first.passed[leaf] for leaf in differing)
    figures = figures_of(by_task)
    return JudgeAgreement(
        leaves=len(leaves),
        only_first=only_first,
        only_second=len(differing) - only_first,
        agreement=figures.agreement,
        kappa=figures.kappa,
        ac1=figures.ac1,
        means=_means(_scores_by_task([first, second])) or None,
        examples=list(map("/".join, differing[:_EXAMPLES])),
    )


def _scores_by_task(judgings: Sequence[Judging]) -> dict[str, list[list[float]]]:
    """Return the scores by each judging of each answer that all scored."""
    scores = [judging.scores for judging in judgings]
    by_task: dict[str, list[list[float]]] = {}
    for place in _shared(scores):
        by_task.setdefault(place[0], []).append([of_judging[place] for of_judging in scores])
    return by_task


def _means(by_task: Mapping[str, Sequence[Sequence[float]]]) -> list[float]:
    """Return partial completion by each judging, over tasks as ``metrics`` shows it."""
    of_tasks = [[*map(fmean, zip(*scores, strict=True))] for scores in by_task.values()]
    return [*map(fmean, zip(*of_tasks, strict=True))]


def _shared(maps: Sequence[Mapping[Name, Any]]) -> list[Name]:
    """Return the keys that all have, in the order of the first."""
    keys = set(maps[0]).intersection(*maps)
    return [key for key in maps[0] if key in keys]


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """The judgments of an agent's answers, as ``mind2web2 rejudge --json`` prints them.

    Args:
        judges: of the results, and of the judgments.
        repeatability: ``None`` where each answer was judged once.
        agreement: of both judges, ``None`` where they are one.
    """

    agent: str
    judges: tuple[str, str]
    repeatability: Repeatability | None
    agreement: JudgeAgreement | None

    @classmethod
    def read(cls, agent: str, eval_results_root: Path, again: Sequence[Path]) -> JudgedAgain:
        """Return the figures of an agent's results and those under other roots."""
        counts = Judging.read(eval_results_root, agent)
        judgings = [Judging.read(root, agent) for root in again]
        judges = (counts.judges, judgings[0].judges)
        has_other = judges[0] != judges[1] or len(judgings) == 1
        return cls(
            agent,
            judges,
            repeatability(judgings) if len(judgings) > 1 else None,
            judge_agreement(counts, judgings[0]) if has_other else None,
        )

    def lines(self) -> Iterator[str]:
        """Yield the figures in sentences."""
        if self.repeatability is not None:
            for text in self.repeatability.lines(self.judges[1]):
                yield f"{self.agent}: {text}"
        if self.agreement is not None and self.agreement.leaves:
            for text in self.agreement.lines(self.judges):
                yield f"{self.agent}: {text}"
