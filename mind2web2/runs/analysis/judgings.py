"""The leaves of two results of the same answers: flips by cause, and how far judgments and judges agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from mind2web2.runs.analysis.comparison import ranking
from mind2web2.runs.reader import leaf_facts, leaves_of, pages_not_had
from mind2web2.runs.results import latest_results
from mind2web2.runs.score_matrix import ScoredAnswer
from mind2web2.runs.summaries import agent_answers
from mind2web2.statistics.agreement import Pair, cohen_kappa, gwet_ac1
from mind2web2.statistics.bootstrap import Interval, Limits, Statistic, bootstrap_intervals, sums_of
from mind2web2.statistics.variance import NestedVariance, nested_variance
from mind2web2.utils.text import mapping

Cause = Literal["skip", "page_missing", "extraction", "vote", "answer", "judge"]
CAUSES: Mapping[Cause, str] = {
    "skip": "skipped, as a prerequisite failed",
    "page_missing": "page unavailable",
    "extraction": "value not extracted, or extracted differently",
    "vote": "votes differ",
    "answer": "the answers claim different things",
    "judge": "same claim, other verdict",
}
_EXAMPLES_OF_CAUSE = 3
_EXAMPLES = 5
# Verdicts of two judges on a leaf, in the order of the counts of a task.
_CELLS = [(True, True), (True, False), (False, True), (False, False)]


@dataclass(frozen=True, slots=True)
class JudgedLeaf:
    """One leaf's own verdict and the facts that tell why two of them differ."""

    passed: bool
    decided_by: str | None
    claim: str | None
    answer_sha256: str | None
    is_split: bool
    lacks_page: bool


# By task, answer name and leaf.
Leaves = Mapping[tuple[str, str, str], JudgedLeaf]


def _judged_leaves(task_id: str, answer_name: str, result: Mapping[str, Any]) -> Leaves:
    """Return the leaves of a result; of leaves with one id the last counts."""
    sha256 = mapping(result.get("provenance")).get("answer_sha256")
    found = {}
    for leaf in leaves_of(result):
        verdict = mapping(leaf.get("superseded")) or leaf
        own = mapping(leaf.get("evidence"))
        found[task_id, answer_name, str(leaf.get("id"))] = JudgedLeaf(
            passed=verdict.get("status") == "passed",
            decided_by=own.get("decided_by"),
            claim=own.get("claim"),
            answer_sha256=sha256,
            is_split=leaf_facts(leaf).is_split,
            lacks_page=bool(pages_not_had(leaf)) or own.get("decided_by") == "page",
        )
    return found


@dataclass(frozen=True, slots=True)
class Judging:
    """An agent's answers as they were judged once, and the leaves of those with a score."""

    answers: Sequence[ScoredAnswer]
    leaves: Leaves

    @classmethod
    def read(cls, eval_results_root: Path, agent_name: str) -> Judging:
        """Return an agent's newest results."""
        answers = agent_answers(eval_results_root, agent_name)
        scored = {(answer.task_id, answer.answer_name) for answer in answers if answer.score is not None}
        leaves: dict[tuple[str, str, str], JudgedLeaf] = {}
        for task_id, answer_name, result in latest_results(eval_results_root, agent_name):
            if (task_id, answer_name) in scored:
                leaves |= _judged_leaves(task_id, answer_name, result.content)
        return cls(answers, leaves)

    def scores(self) -> dict[tuple[str, str], float]:
        """Return the scores by task and answer."""
        return {(one.task_id, one.answer_name): one.score for one in self.answers if one.score is not None}


# Flips between agents


@dataclass(frozen=True, slots=True)
class FlipCount:
    """The flips of one cause."""

    gained: int
    lost: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeafFlips:
    """The leaves of two agents, matched by task, answer name and leaf id."""

    matched: int
    unmatched: int
    by_cause: Mapping[Cause, FlipCount]

    def summary(self) -> dict[str, Any]:
        """Return them as ``mind2web2 compare --json`` prints them."""
        return asdict(self)


def leaf_flips(first: Leaves, second: Leaves) -> LeafFlips:
    """Return the leaves that pass in one agent's result only, by the cause on the side that fails."""
    answers = {name[:2] for name in first} & {name[:2] for name in second}
    shared = [name for name in first if name in second]
    gained: Counter[Cause] = Counter()
    lost: Counter[Cause] = Counter()
    examples: dict[Cause, list[str]] = {cause: [] for cause in CAUSES}
    for name in shared:
        one, other = first[name], second[name]
        if one.passed != other.passed:
            cause = _cause(failed=one if other.passed else other, passed=other if other.passed else one)
            (gained if other.passed else lost)[cause] += 1
            examples[cause].append("/".join((name[0], name[1].removesuffix(".md"), name[2])))
    sides = sum(name[:2] in answers for leaves in (first, second) for name in leaves)
    return LeafFlips(
        len(shared),
        sides - 2 * len(shared),
        {
            cause: FlipCount(gained[cause], lost[cause], tuple(examples[cause][:_EXAMPLES_OF_CAUSE]))
            for cause in CAUSES
        },
    )


def _cause(failed: JudgedLeaf, passed: JudgedLeaf) -> Cause:
    if failed.decided_by == "prerequisite":
        return "skip"
    if failed.lacks_page:
        return "page_missing"
    is_other_claim = failed.claim != passed.claim
    is_same_answer = failed.answer_sha256 is not None and failed.answer_sha256 == passed.answer_sha256
    # A script decides a leaf by the values that it extracted.
    if failed.decided_by in ("script", None) or (is_other_claim and is_same_answer):
        return "extraction"
    if is_other_claim:
        return "answer"
    return "vote" if failed.is_split or passed.is_split else "judge"


# Judgments of the same answers


@dataclass(frozen=True, slots=True)
class Figure:
    """A share or a coefficient with its 95% interval over tasks, ``None`` where the data does not give it."""

    value: float | None
    interval: Interval | None

    def summary(self) -> dict[str, Any]:
        """Return it as JSON values."""
        low, high = (None, None) if self.interval is None else (self.interval.low, self.interval.high)
        parts = {"value": self.value, "low": low, "high": high}
        return {name: None if part is None else round(part, 6) for name, part in parts.items()}


@dataclass(frozen=True, slots=True)
class Repeatability:
    """How far one judge agrees with itself.

    Args:
        variance: components of the scores' variance; ``None`` with fewer than two tasks.
        flip_rate: the chance that two judgments of a leaf differ.
        ever_flipped: the leaves that were not judged alike every time.
    """

    answers: int
    means: tuple[float, ...]
    variance: NestedVariance | None
    leaves: int
    flip_rate: Figure
    ever_flipped: int

    def summary(self) -> dict[str, Any]:
        """Return it as ``mind2web2 rejudge --json`` prints it."""
        share = None if self.variance is None else self.variance.judge_share()
        return {
            "answers": self.answers,
            "means": [round(mean, 4) for mean in self.means],
            "variance": None if self.variance is None else self.variance.summary(),
            "judge_share_of_variance": None if share is None else round(share, 6),
            "leaves": self.leaves,
            "flip_rate": self.flip_rate.summary(),
            "ever_flipped": self.ever_flipped,
        }


def repeatability(judgings: Sequence[Judging]) -> Repeatability:
    """Compare several judgments of the same answers by one judge."""
    scores = [judging.scores() for judging in judgings]
    shared = [place for place in scores[0] if all(place in own for own in scores)]
    by_task: dict[str, list[list[float]]] = {}
    for place in shared:
        by_task.setdefault(place[0], []).append([own[place] for own in scores])
    places = _decided_in_all([judging.leaves for judging in judgings])
    rows: dict[str, list[float]] = {}
    ever = 0
    for leaf in places:
        passed = sum(judging.leaves[leaf].passed for judging in judgings)
        ever += 0 < passed < len(judgings)
        # Of all pairs of judgments, those that differ.
        flipped = passed * (len(judgings) - passed) / (len(judgings) * (len(judgings) - 1) / 2)
        row = rows.setdefault(leaf[0], [0.0, 0.0])
        row[0] += flipped
        row[1] += 1
    return Repeatability(
        len(shared),
        tuple(fmean(own[place] for place in shared) for own in scores) if shared else (),
        nested_variance(list(by_task.values())),
        len(places),
        _figure(rows, lambda sums: sums[0] / sums[1], (0.0, 1.0)),
        ever,
    )


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """Two judges on the same leaves."""

    leaves: int
    only_first: int
    only_second: int
    agreement: Figure
    kappa: Figure
    ac1: Figure
    means: tuple[float, float] | None
    examples: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """Return it as ``mind2web2 rejudge --json`` prints it."""
        figures = {"agreement": self.agreement, "kappa": self.kappa, "ac1": self.ac1}
        return asdict(self) | {name: found.summary() for name, found in figures.items()}


def judge_agreement(first: Judging, second: Judging) -> JudgeAgreement:
    """Compare two judges' verdicts on the leaves that both decided."""
    cells: Counter[tuple[bool, bool]] = Counter()
    rows: dict[str, list[float]] = {}
    examples = []
    places = _decided_in_all([first.leaves, second.leaves])
    for place in places:
        verdicts = first.leaves[place].passed, second.leaves[place].passed
        cells[verdicts] += 1
        rows.setdefault(place[0], [0.0] * 4)[_CELLS.index(verdicts)] += 1
        if verdicts[0] != verdicts[1]:
            examples.append("/".join((place[0], place[1].removesuffix(".md"), place[2])))
    one, other = first.scores(), second.scores()
    shared = [place for place in one if place in other]
    return JudgeAgreement(
        len(places),
        cells[True, False],
        cells[False, True],
        _figure(rows, lambda sums: (sums[0] + sums[3]) / sum(sums), (0.0, 1.0)),
        _figure(rows, _coefficient(cohen_kappa)),
        _figure(rows, _coefficient(gwet_ac1)),
        (fmean(one[place] for place in shared), fmean(other[place] for place in shared)) if shared else None,
        tuple(examples[:_EXAMPLES]),
    )


def _coefficient(measure: Callable[[Sequence[Pair]], Any]) -> Statistic:
    def statistic(sums: Sequence[float]) -> float:
        # Two of each, as a single pair has no coefficient.
        pairs = [Pair(*cell, weight=count) for cell, count in zip(_CELLS, sums, strict=True) if count] * 2
        value = measure(pairs).value
        if value is None:
            # A judge has one verdict for all: no agreement beyond chance, unless there is no disagreement.
            return float(not sums[1] + sums[2])
        return float(value)

    return statistic


def _decided_in_all(judgings: Sequence[Leaves]) -> list[tuple[str, str, str]]:
    return [
        place
        for place in judgings[0]
        if all(place in own and own[place].decided_by == "judge" for own in judgings)
    ]


def _figure(rows: Mapping[str, Sequence[float]], statistic: Statistic, limits: Limits = None) -> Figure:
    """Return a statistic of sums over tasks; leaves of one task are not independent of each other."""
    if not rows:
        return Figure(None, None)
    columns = list(rows.values())
    (interval,) = bootstrap_intervals(columns, [(statistic, limits)])
    return Figure(statistic(sums_of(columns)), interval)


@dataclass(frozen=True, slots=True)
class SwappedPair:
    """Two agents of which the judges prefer different ones; differences are the second minus the first."""

    first: str
    second: str
    by_first_judge: float
    by_second_judge: float


@dataclass(frozen=True, slots=True)
class RankingCheck:
    """The ranking of agents by partial completion under two judges, over the answers that both scored."""

    orders: tuple[tuple[str, ...], tuple[str, ...]]
    tied: tuple[tuple[str, ...], tuple[str, ...]]
    swapped: tuple[SwappedPair, ...]

    @property
    def survives(self) -> bool:
        """Tell whether both judges rank the agents alike."""
        return not self.swapped

    def summary(self) -> dict[str, Any]:
        """Return it as ``mind2web2 rejudge --json`` prints it."""
        return asdict(self) | {"survives": self.survives}


def ranking_check(agents: Sequence[tuple[str, Judging, Judging]]) -> RankingCheck:
    """Rank at least two agents by either judge.

    Raises:
        NoSharedTaskError: no task has scores of all agents by both judges.
    """
    rankings = []
    for side in (1, 2):
        own = [(name, _shared_answers((first, second), side - 1)) for name, first, second in agents]
        rankings.append(ranking(own, allow_unfair=True).metrics["avg_score"])
    one, other = rankings
    swapped = tuple(
        SwappedPair(first, second, round(before, 6), round(after, 6))
        for first, second in combinations((name for name, *_ in agents), 2)
        if (before := one.values[second] - one.values[first])
        * (after := other.values[second] - other.values[first])
        < 0
    )
    return RankingCheck((tuple(one.values), tuple(other.values)), (one.tied, other.tied), swapped)


def _shared_answers(judgings: tuple[Judging, Judging], side: int) -> list[ScoredAnswer]:
    both = set.intersection(*(set(judging.scores()) for judging in judgings))
    return [each for each in judgings[side].answers if (each.task_id, each.answer_name) in both]
