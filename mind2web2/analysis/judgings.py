"""How far several judgments of the same answers agree: one judge's, or two judges'."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from mind2web2.results.known_answers import agent_answers
from mind2web2.results.result_file import ResultFile
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.results.stored_results import latest_results
from mind2web2.statistics.agreement import CELLS, agreement, coefficient
from mind2web2.statistics.paired import cohen_kappa, gwet_ac1
from mind2web2.statistics.uncertainty import (
    Limits,
    Statistic,
    VarianceFigures,
    bootstrap_intervals,
    nested_variance,
    sums_of,
)

_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class LeafVerdict:
    """One leaf's own verdict, and what decided it."""

    passed: bool
    decided_by: str | None


# By task, answer name and leaf.
Leaves = Mapping[tuple[str, str, str], LeafVerdict]


def _judged_leaves(task_id: str, answer_name: str, result: ResultFile) -> Leaves:
    """Return the leaves of a result; of leaves with one id the last counts."""
    return {
        (task_id, answer_name, leaf.id): LeafVerdict(
            passed=leaf.verdict.status == "passed",
            decided_by=None if leaf.evidence is None else leaf.evidence.decided_by,
        )
        for leaf in result.leaves()
    }


@dataclass(frozen=True, slots=True)
class Judging:
    """An agent's answers as they were judged once, and the leaves of those with a score."""

    answers: Sequence[ScoredAnswer]
    leaves: Leaves

    @classmethod
    def read(cls, eval_results_root: Path, agent_name: str) -> Judging:
        """Return an agent's newest results."""
        answers = agent_answers(eval_results_root, agent_name)
        scored = {
            (answer.task_id, answer.answer_name) for answer in answers if answer.score is not None
        }
        leaves: dict[tuple[str, str, str], LeafVerdict] = {}
        for task_id, answer_name, result in latest_results(eval_results_root, agent_name):
            if (task_id, answer_name) in scored:
                leaves |= _judged_leaves(task_id, answer_name, result.content)
        return cls(answers, leaves)

    def scores(self) -> dict[tuple[str, str], float]:
        """Return the scores by task and answer."""
        return {
            (one.task_id, one.answer_name): one.score
            for one in self.answers
            if one.score is not None
        }


def _leaf_name(place: tuple[str, str, str]) -> str:
    task_id, answer_name, leaf = place
    return "/".join((task_id, answer_name.removesuffix(".md"), leaf))


@dataclass(frozen=True, slots=True)
class Figure:
    """A statistic with its interval over tasks, ``None`` where it is unknown."""

    value: float | None
    low: float | None
    high: float | None


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
    flip_rate: Figure
    ever_flipped: int


def repeatability(judgings: Sequence[Judging]) -> Repeatability:
    """Return how far the judgings of one judge agree."""
    scores = [judging.scores() for judging in judgings]
    shared = [place for place in scores[0] if all(place in own for own in scores)]
    by_task: dict[str, list[list[float]]] = {}
    for place in shared:
        by_task.setdefault(place[0], []).append([own[place] for own in scores])
    places = _places_judged_each_time([judging.leaves for judging in judgings])
    rows: dict[str, list[float]] = {}
    ever = 0
    for leaf in places:
        passed = sum(judging.leaves[leaf].passed for judging in judgings)
        ever += 0 < passed < len(judgings)
        # The share of pairs of judgments that differ.
        flipped = passed * (len(judgings) - passed) / (len(judgings) * (len(judgings) - 1) / 2)
        row = rows.setdefault(leaf[0], [0.0, 0.0])
        row[0] += flipped
        row[1] += 1
    variance = nested_variance(list(by_task.values()))
    share = None if variance is None else variance.judge_share()
    means = [fmean(own[place] for place in shared) for own in scores if shared]
    return Repeatability(
        answers=len(shared),
        means=[round(mean, 4) for mean in means],
        variance=None if variance is None else variance.figures(),
        judge_share_of_variance=None if share is None else round(share, 6),
        leaves=len(places),
        flip_rate=_figure(rows, lambda sums: sums[0] / sums[1], (0.0, 1.0)),
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
    agreement: Figure
    kappa: Figure
    ac1: Figure
    means: list[float] | None
    examples: list[str]


def judge_agreement(first: Judging, second: Judging) -> JudgeAgreement:
    """Compare two judges on the leaves that both decided."""
    cells: Counter[tuple[bool, bool]] = Counter()
    rows: dict[str, list[float]] = {}
    examples = []
    places = _places_judged_each_time([first.leaves, second.leaves])
    for place in places:
        verdicts = first.leaves[place].passed, second.leaves[place].passed
        cells[verdicts] += 1
        rows.setdefault(place[0], [0.0] * 4)[CELLS.index(verdicts)] += 1
        if verdicts[0] != verdicts[1]:
            examples.append(_leaf_name(place))
    one, other = first.scores(), second.scores()
    shared = [place for place in one if place in other]
    means = [fmean(own[place] for place in shared) for own in (one, other) if shared]
    return JudgeAgreement(
        leaves=len(places),
        only_first=cells[True, False],
        only_second=cells[False, True],
        agreement=_figure(rows, agreement, (0.0, 1.0)),
        kappa=_figure(rows, coefficient(cohen_kappa)),
        ac1=_figure(rows, coefficient(gwet_ac1)),
        means=means or None,
        examples=examples[:_EXAMPLES],
    )


def _places_judged_each_time(judgings: Sequence[Leaves]) -> list[tuple[str, str, str]]:
    return [
        place
        for place in judgings[0]
        if all(place in own and own[place].decided_by == "judge" for own in judgings)
    ]


def _figure(
    rows: Mapping[str, Sequence[float]], statistic: Statistic, limits: Limits = None
) -> Figure:
    """Return a statistic of sums over tasks with its interval.

    Leaves of one task are not independent.
    """
    if not rows:
        return Figure(None, None, None)
    columns = list(rows.values())
    (interval,) = bootstrap_intervals(columns, [(statistic, limits)])
    value = round(statistic(sums_of(columns)), 6)
    if interval is None:
        return Figure(value, None, None)
    return Figure(value, round(interval.low, 6), round(interval.high, 6))
