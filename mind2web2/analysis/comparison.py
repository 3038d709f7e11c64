"""Agents over the tasks that all of them have: differences, tests and ranking; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean, variance

from pydantic import BaseModel, ConfigDict

from mind2web2.analysis.sampled_metrics import SampledMetric, sample_metrics
from mind2web2.analysis.score_matrix import (
    ScoreGrid,
    mixture_warnings,
    score_grid,
    scripts_by_task,
)
from mind2web2.errors import UsageError
from mind2web2.results.scored_answer import ScoredAnswer, scored_answers
from mind2web2.statistics.paired import (
    DRAWS,
    METHOD,
    PairedTest,
    detectable_difference,
)
from mind2web2.statistics.uncertainty import (
    LEVEL,
    SEED,
    IntervalFigures,
    SampledInterval,
    rounded,
    too_few,
)
from mind2web2.utils.names import name_list, natural_key

_P_DIGITS = 6
_RANKED = ("avg_score", "success_rate")
# The numbers below are for a difference of shares.
_LIMITS = (-1.0, 1.0)
_TASKS_SHOWN = 5
# An agent's name and its answers.
Agent = tuple[str, Sequence[ScoredAnswer]]


class NoSharedTaskError(UsageError):
    """No task has scores of all agents that are compared.

    ``fact`` says so without a command's options.
    """

    def __init__(self, fact: str, cure: str) -> None:
        super().__init__(f"nothing to compare: {fact}; {cure}")
        self.fact = fact


class TaskDifference(BaseModel):
    """The second agent's value at a task minus the first's."""

    model_config = ConfigDict(frozen=True)

    task_id: str
    difference: float


class Pair(IntervalFigures):
    """One metric of two agents over the tasks where both have a value, as means over the runs.

    The interval is that of the difference.

    Args:
        p_value: of no difference, two-sided; ``None`` where no task has a value of both.
        p_holm: the p-value, corrected for all pairs of the agents that are compared.
        clear: the difference is more than chance.
        detectable: the smallest difference that these tasks and runs show four times out of five;
            ``None`` where even 1, the largest that is possible, is too small.
        largest: the tasks with the largest differences.
    """

    first_agent: str
    second_agent: str
    first: float | None
    second: float | None
    difference: float | None
    p_value: float | None
    p_holm: float
    clear: bool
    detectable: float | None
    largest: tuple[TaskDifference, ...]

    def is_worse_by(self, margin: float) -> bool:
        """Tell whether the second agent is shown to be worse than the first by more than a margin.

        An agent that is tied with the first is not.
        """
        # Without an interval, the loss is the same at each of enough tasks.
        least_loss = self.difference if self.high is None else self.high
        return self.clear and least_loss is not None and least_loss < -margin


class MetricRanking(BaseModel):
    """Agents by one metric.

    Args:
        values: from the best agent down.
        tied_with_best: agents that no test separates from the best one, and the best.
        differences: each agent with each one behind it in the given order.
    """

    model_config = ConfigDict(frozen=True)

    values: dict[str, float]
    tied_with_best: tuple[str, ...]
    differences: tuple[Pair, ...]

    def against(self, first: str) -> dict[str, Pair]:
        """Return the pairs of the agent that was given first, by the other agent."""
        return {pair.second_agent: pair for pair in self.differences if pair.first_agent == first}


class Ranking(BaseModel):
    """Agents over the same tasks, in the given order, and how differences are tested."""

    model_config = ConfigDict(frozen=True)

    level: float = LEVEL
    method: str = METHOD
    resamples: int = DRAWS
    seed: int = SEED
    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    num_tasks: int
    metrics: dict[str, MetricRanking]
    warnings: tuple[str, ...]


def _shared_grids(
    agents: Sequence[Agent], task_ids: Iterable[str] | None
) -> tuple[list[ScoreGrid], list[str]]:
    """Return the scores of agents over their common tasks, and warnings about differences.

    Raises:
        NoSharedTaskError: there is no such task.
    """
    names = [name for name, _ in agents]
    if task_ids is not None:
        wanted = list(task_ids)
        grids = [score_grid(own, wanted) for _, own in agents]
        warnings = []
    else:
        tasks = [{answer.task_id for answer in scored_answers(own)} for _, own in agents]
        common = set.intersection(*tasks)
        if not common:
            raise NoSharedTaskError(
                f"no task has scores of {' and '.join(names)}",
                "evaluate them on the same tasks, or name tasks with --task_list, where missing "
                "answers count as 0",
            )
        warnings = [
            f"tasks of {name} that others lack, left out: {name_list(own - common)}"
            for name, own in zip(names, tasks, strict=True)
            if own - common
        ]
        grids = [
            score_grid(answer for answer in own if answer.task_id in common) for _, own in agents
        ]
    judged = [answer for grid in grids for answer in grid.judged_answers]
    return grids, [
        *warnings,
        *_unequal_runs(names, grids),
        *mixture_warnings(judged, "compared"),
    ]


def _unequal_runs(names: Sequence[str], grids: Sequence[ScoreGrid]) -> list[str]:
    runs = [len(grid.runs) for grid in grids]
    if len(set(runs)) == 1:
        return []
    listed = ", ".join(f"{name} {count}" for name, count in zip(names, runs, strict=True))
    return [
        "the agents have different numbers of runs, so that pass@k compares unequal chances, and "
        f"rare successes count for the agent with more runs: {listed}"
    ]


def _pairs(metrics: Mapping[str, Mapping[str, SampledMetric]], name: str) -> list[Pair]:
    """Return each agent with each one behind it in one metric.

    Args:
        metrics: by agent and name.
    """
    pairs = [
        _pair((first, second), metrics[first][name], metrics[second][name])
        for first, second in combinations(metrics, 2)
    ]
    adjusted = PairedTest.adjusted([pair.p_holm for pair in pairs])
    return [
        pair.model_copy(update={"p_holm": round(p_holm, _P_DIGITS), "clear": p_holm < 1 - LEVEL})
        for pair, p_holm in zip(pairs, adjusted, strict=True)
    ]


def _pair(agents: tuple[str, str], first: SampledMetric, second: SampledMetric) -> Pair:
    """Return the second agent's metric minus the first's, not corrected for other pairs."""
    tasks = sorted(first.values.keys() & second.values.keys(), key=natural_key)
    sides = [[metric.of_task(task) for task in tasks] for metric in (first, second)]
    by_task = {task: other - one for task, one, other in zip(tasks, *sides, strict=True)}
    test = PairedTest.of(list(by_task.values()), _LIMITS)
    reason = too_few(len(tasks))
    if reason is None and test.interval is None:
        reason = "the difference is the same at every task"
    interval = None if reason else test.interval
    figures = SampledInterval(len(tasks), interval, reason, first.digits).figures()
    one, other = (fmean(side) if side else None for side in sides)
    difference = None if one is None or other is None else other - one
    return Pair(
        **figures.model_dump(),
        first_agent=agents[0],
        second_agent=agents[1],
        first=rounded(one, first.digits),
        second=rounded(other, first.digits),
        difference=rounded(difference, first.digits),
        p_value=rounded(test.p_value, _P_DIGITS),
        p_holm=1.0 if test.p_value is None else test.p_value,
        clear=False,
        detectable=_detectable(list(by_task.values())),
        largest=_largest(by_task),
    )


def _largest(by_task: Mapping[str, float]) -> tuple[TaskDifference, ...]:
    moved = sorted(by_task.items(), key=lambda entry: -abs(entry[1]))[:_TASKS_SHOWN]
    return tuple(
        TaskDifference(task_id=task, difference=round(value, 4)) for task, value in moved if value
    )


def ranking(
    agents: Sequence[Agent],
    task_ids: Iterable[str] | None = None,
    *,
    allow_unfair: bool = False,
) -> Ranking:
    """Rank agents by partial completion and by success rate.

    Args:
        task_ids: the tasks that count, with 0 for what is missing; by default those that all have a
            score at.
        allow_unfair: compare also scores of different judge models, or of different scripts at
            every task.

    Raises:
        UsageError: no task is shared, or the scores of two agents cannot be compared.
    """
    grids, warnings = _shared_grids(agents, task_ids)
    by_agent = dict(zip((name for name, _ in agents), grids, strict=True))
    if not allow_unfair:
        _check_comparable(by_agent)
    metrics = {name: sample_metrics(grid) for name, grid in by_agent.items()}
    return Ranking(
        agents=tuple(by_agent),
        tasks=tuple(grids[0].tasks),
        num_tasks=len(grids[0].tasks),
        metrics={name: _rank(_pairs(metrics, name)) for name in _RANKED},
        warnings=(*warnings, *_missing(by_agent), *_other_capture_days(by_agent)),
    )


def _rank(pairs: Sequence[Pair]) -> MetricRanking:
    values = {}
    for pair in pairs:
        values[pair.first_agent] = pair.first or 0.0
        values[pair.second_agent] = pair.second or 0.0
    ordered = dict(sorted(values.items(), key=lambda entry: -entry[1]))
    best = next(iter(ordered))
    beaten = set()
    for pair in pairs:
        sides = {pair.first_agent, pair.second_agent}
        if best in sides and pair.clear:
            beaten |= sides - {best}
    return MetricRanking(
        values=ordered,
        tied_with_best=tuple(name for name in ordered if name not in beaten),
        differences=tuple(pairs),
    )


def _detectable(differences: Sequence[float]) -> float | None:
    if len(differences) < 2:
        return None
    least = detectable_difference(len(differences), variance(differences))
    return least if least is not None and least <= 1 else None


def _check_comparable(grids: Mapping[str, ScoreGrid]) -> None:
    for (first, one), (second, other) in combinations(grids.items(), 2):
        judges = [{answer.judge_model for answer in grid.judged_answers} for grid in (one, other)]
        if None not in judges[0] | judges[1] and all(judges) and not judges[0] & judges[1]:
            listed = [name_list(_judge_names(grid)) for grid in (one, other)]
            raise UsageError(
                f"{first} was judged by {listed[0]} and {second} by {listed[1]}: their difference "
                "would be the judges' as well; judge both alike, split the difference by cause "
                "with --why, or compare all the same with --allow_unfair"
            )
        scripts = [scripts_by_task(grid.scored_answers) for grid in (one, other)]
        shared = scripts[0].keys() & scripts[1].keys()
        if shared and all(not scripts[0][task] & scripts[1][task] for task in shared):
            raise UsageError(
                f"{first} and {second} were judged by different scripts at every task; evaluate "
                "both with one version of the scripts, split the difference by cause with --why, "
                "or compare all the same with --allow_unfair"
            )


def _judge_names(grid: ScoreGrid) -> list[str]:
    """Return the models of the judges."""
    return sorted({str(answer.judge_model) for answer in grid.judged_answers})


def _missing(grids: Mapping[str, ScoreGrid]) -> list[str]:
    counts = {name: len(grid.missing) for name, grid in grids.items() if grid.missing}
    if not counts:
        return []
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    treatment = "counted as 0" if next(iter(grids.values())).missing_counted_as_zero else "left out"
    return [f"answers without a score at the compared tasks, {treatment}: {listed}"]


def _other_capture_days(grids: Mapping[str, ScoreGrid]) -> list[str]:
    """Return a warning where the days of the agents' captures do not overlap.

    This is so where the agents' pages were captured in ranges of days without a common day.
    """
    days = {
        name: sorted(day for answer in grid.scored_answers for day in answer.facts.capture_days)
        for name, grid in grids.items()
    }
    known = {name: (of_agent[0], of_agent[-1]) for name, of_agent in days.items() if of_agent}
    if len(known) < 2:
        return []
    last_first_day = max(first for first, _ in known.values())
    first_last_day = min(last for _, last in known.values())
    if last_first_day <= first_last_day:
        return []
    listed = "; ".join(f"{name} {low} to {high}" for name, (low, high) in known.items())
    return [f"pages were captured on different days: {listed}"]
