"""How far several judgments of the same answers agree: one judge's, or two judges'."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from mind2web2.analysis.score_matrix import judges_of
from mind2web2.results.known_answers import agent_answers
from mind2web2.results.result_file import ResultFile
from mind2web2.results.scored_answer import ScoredAnswer, scored_answers
from mind2web2.results.stored_results import latest_results
from mind2web2.statistics.agreement import Cells, figures_of, share_by_task
from mind2web2.statistics.paired import Estimate
from mind2web2.statistics.uncertainty import rounded
from mind2web2.statistics.variance import VarianceFigures, nested_variance
from mind2web2.utils.text import counted, number, percent

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
        scored = {answer.place for answer in scored_answers(answers)}
        leaves: dict[tuple[str, str, str], LeafVerdict] = {}
        for task_id, answer_name, result in latest_results(eval_results_root, agent_name):
            if (task_id, answer_name) in scored:
                leaves |= _judged_leaves(task_id, answer_name, result.content)
        return cls(answers, leaves)

    def scores(self) -> dict[tuple[str, str], float]:
        """Return the scores by task and answer."""
        return {one.place: one.score for one in self.answers if one.score is not None}

    def judges(self) -> str:
        """Return the judges of the answers with a score."""
        return "; ".join(sorted(judges_of(scored_answers(self.answers))))


def _leaf_name(place: tuple[str, str, str]) -> str:
    task_id, answer_name, leaf = place
    return "/".join((task_id, answer_name.removesuffix(".md"), leaf))


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
    scores = [judging.scores() for judging in judgings]
    shared = [place for place in scores[0] if all(place in of_judging for of_judging in scores)]
    by_task: dict[str, list[list[float]]] = {}
    for place in shared:
        by_task.setdefault(place[0], []).append([of_judging[place] for of_judging in scores])
    places = _places_judged_each_time([judging.leaves for judging in judgings])
    rows: dict[str, tuple[float, float]] = {}
    ever = 0
    for leaf in places:
        passed = sum(judging.leaves[leaf].passed for judging in judgings)
        ever += 0 < passed < len(judgings)
        # The share of pairs of judgments that differ.
        flipped = passed * (len(judgings) - passed) / (len(judgings) * (len(judgings) - 1) / 2)
        flips, leaves = rows.get(leaf[0], (0.0, 0.0))
        rows[leaf[0]] = flips + flipped, leaves + 1
    variance = nested_variance(list(by_task.values()))
    share = None if variance is None else variance.judge_share()
    means = [fmean(of_judging[place] for place in shared) for of_judging in scores if shared]
    return Repeatability(
        answers=len(shared),
        means=[round(mean, 4) for mean in means],
        variance=None if variance is None else variance.figures(),
        judge_share_of_variance=rounded(share, 6),
        leaves=len(places),
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
        yield (
            f"{other} agrees with the results ({of_results}) at {self.agreement} of "
            f"{counted(self.leaves, 'leaf')}; kappa {_coefficient(self.kappa)}, AC1 "
            f"{_coefficient(self.ac1)}."
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
    cells: Counter[tuple[bool, bool]] = Counter()
    by_task: dict[str, Cells] = {}
    examples = []
    places = _places_judged_each_time([first.leaves, second.leaves])
    for place in places:
        verdicts = first.leaves[place].passed, second.leaves[place].passed
        cells[verdicts] += 1
        by_task.setdefault(place[0], Cells()).add(*verdicts)
        if verdicts[0] != verdicts[1]:
            examples.append(_leaf_name(place))
    figures = figures_of(by_task)
    one, other = first.scores(), second.scores()
    shared = [place for place in one if place in other]
    means = [fmean(of_judge[place] for place in shared) for of_judge in (one, other) if shared]
    return JudgeAgreement(
        leaves=len(places),
        only_first=cells[True, False],
        only_second=cells[False, True],
        agreement=figures.agreement,
        kappa=figures.kappa,
        ac1=figures.ac1,
        means=means or None,
        examples=examples[:_EXAMPLES],
    )


def _places_judged_each_time(judgings: Sequence[Leaves]) -> list[tuple[str, str, str]]:
    return [
        place
        for place in judgings[0]
        if all(place in leaves and leaves[place].decided_by == "judge" for leaves in judgings)
    ]


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
        judges = (counts.judges(), judgings[0].judges())
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


def _coefficient(figure: Estimate) -> str:
    if figure.value is None:
        return "unknown"
    if figure.low is None or figure.high is None:
        return number(figure.value)
    return f"{number(figure.value)} ({number(figure.low)} to {number(figure.high)})"
