"""Agents over the tasks that all of them have: differences, tests, ranking and power; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import NotRequired, TypedDict

from mind2web2.analysis.sampled_metrics import SampledMetric, sampled_metrics
from mind2web2.analysis.score_matrix import ScoreGrid, mixture_warnings, score_grid
from mind2web2.errors import UsageError
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.statistics.paired import (
    DRAWS,
    METHOD,
    POWER,
    Variation,
    detectable_difference,
    holm,
    paired_test,
    runs_needed,
    tasks_needed,
    variation,
)
from mind2web2.statistics.uncertainty import (
    LEVEL,
    SEED,
    IntervalFigures,
    Limits,
    SampledInterval,
    too_few,
)
from mind2web2.utils.names import name_list, natural_key

_P_DIGITS = 6
_RANKED = ("avg_score", "success_rate")
_TASKS_SHOWN = 5
_MOST_TIMES_TASKS = 10
# An agent's name and its answers.
Agent = tuple[str, Sequence[ScoredAnswer]]


class NoSharedTaskError(UsageError):
    """No task has scores of all agents that are compared; ``fact`` says so without a command's options."""

    def __init__(self, fact: str, cure: str) -> None:
        super().__init__(f"nothing to compare: {fact}; {cure}")
        self.fact = fact


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of two agents over the tasks where both have a value, averaged over each task's runs.

    Args:
        sampled: the interval of the second value minus the first.
        p_value: of no difference, two-sided; ``None`` where no task has a value of both.
    """

    first: float | None
    second: float | None
    sampled: SampledInterval
    p_value: float | None
    by_task: Mapping[str, float]

    @property
    def value(self) -> float | None:
        """Return the second agent's value minus the first's."""
        return None if self.first is None or self.second is None else self.second - self.first

    @property
    def is_clear(self) -> bool:
        """Tell whether the difference is more than chance; its interval then lies on one side of 0."""
        return self.p_value is not None and self.p_value < 1 - LEVEL

    def figures(self) -> ComparedMetric:
        """Return it as it is published."""
        return ComparedMetric(
            self._rounded(self.first),
            self._rounded(self.second),
            self._rounded(self.value),
            self.sampled.figures(),
            None if self.p_value is None else round(self.p_value, _P_DIGITS),
            self.is_clear,
        )

    def _rounded(self, value: float | None) -> float | None:
        return None if value is None else round(value, self.sampled.digits)


class ComparedMetricJson(TypedDict):
    """A metric of two agents as ``mind2web2 metrics --json`` and ``compare --json`` print it.

    ``p_holm`` is missing where only two agents are compared by ``compared``.
    """

    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    exact: bool
    tasks: int
    reason: str | None
    p_value: float | None
    clear: bool
    p_holm: NotRequired[float]


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """One metric of two agents as it is published.

    Args:
        interval: of the difference.
        is_clear: the difference is more than chance.
        p_holm: the p-value corrected for all pairs of agents, ``None`` for a single pair.
    """

    first: float | None
    second: float | None
    difference: float | None
    interval: IntervalFigures
    p_value: float | None
    is_clear: bool
    p_holm: float | None = None

    @property
    def p_known(self) -> float:
        """Return the p-value, 1 where no task has a value of both agents."""
        return 1.0 if self.p_value is None else self.p_value

    @property
    def is_corrected(self) -> bool:
        """Tell whether the correction for several pairs changes the p-value."""
        return self.p_holm is not None and self.p_holm != (self.p_value or 1)

    def as_json(self) -> ComparedMetricJson:
        """Return it as it is printed."""
        written: ComparedMetricJson = {
            "first": self.first,
            "second": self.second,
            "difference": self.difference,
            "low": self.interval.low,
            "high": self.interval.high,
            "exact": self.interval.exact,
            "tasks": self.interval.tasks,
            "reason": self.interval.reason,
            "p_value": self.p_value,
            "clear": self.is_clear,
        }
        if self.p_holm is not None:
            written["p_holm"] = self.p_holm
        return written


class AgentComparisonJson(TypedDict):
    """Two agents in all metrics as ``mind2web2 metrics --json`` prints it."""

    first: str
    second: str
    num_tasks: int
    level: float
    method: str
    resamples: int
    seed: int
    metrics: dict[str, ComparedMetricJson]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class AgentComparison:
    """Two agents in all metrics, by their names in ``summary.json``; pass@k is ``pass_at_k``."""

    first: str
    second: str
    num_tasks: int
    metrics: Mapping[str, ComparedMetric]
    warnings: tuple[str, ...]

    def as_json(self) -> AgentComparisonJson:
        """Return it as it is printed."""
        return {
            "first": self.first,
            "second": self.second,
            "num_tasks": self.num_tasks,
            "level": LEVEL,
            "method": METHOD,
            "resamples": DRAWS,
            "seed": SEED,
            "metrics": {name: one.as_json() for name, one in self.metrics.items()},
            "warnings": list(self.warnings),
        }


def compared(first: Agent, second: Agent, task_ids: Iterable[str] | None = None) -> AgentComparison:
    """Compare two agents in all metrics.

    Args:
        task_ids: the tasks that count, with 0 for what is missing; by default those in which both agents have
            a score.

    Raises:
        NoSharedTaskError: there is no such task.
        ValueError: two answers of an agent have the same task and name.
    """
    grids, warnings = _shared_grids([first, second], task_ids)
    one, other = map(_metrics_of, grids)
    metrics = {name: _difference(one[name], other[name]).figures() for name in one}
    return AgentComparison(first[0], second[0], len(grids[0].tasks), metrics, tuple(warnings))


def compared_with_first(
    agents: Sequence[Agent], task_ids: Iterable[str] | None = None
) -> list[AgentComparison]:
    """Compare the first agent with each other one, as ``ranking`` does: over the tasks that all have.

    P-values are corrected by Holm for all pairs of these agents, also those without the first.

    Raises:
        NoSharedTaskError: no task has scores of all agents.
    """
    if len(agents) < 2:
        return []
    if len(agents) == 2:
        first, second = agents
        return [compared(first, second, task_ids)]
    grids, warnings = _shared_grids(agents, task_ids)
    names = [name for name, _ in agents]
    metrics = dict(zip(names, map(_metrics_of, grids), strict=True))
    pairs = list(combinations(names, 2))
    of_pairs: dict[tuple[str, str], dict[str, ComparedMetric]] = {pair: {} for pair in pairs}
    for name in metrics[names[0]]:
        found = [
            _difference(metrics[one][name], metrics[other][name]).figures() for one, other in pairs
        ]
        p_values = holm([one.p_known for one in found])
        for pair, metric, p_holm in zip(pairs, found, p_values, strict=True):
            of_pairs[pair][name] = replace(
                metric, p_holm=round(p_holm, _P_DIGITS), is_clear=p_holm < 1 - LEVEL
            )
    tasks = len(grids[0].tasks)
    return [
        AgentComparison(*pair, tasks, of_pairs[pair], tuple(warnings))
        for pair in pairs
        if pair[0] == names[0]
    ]


def _shared_grids(
    agents: Sequence[Agent], task_ids: Iterable[str] | None
) -> tuple[list[ScoreGrid], list[str]]:
    """Return the scores of agents over the tasks of all of them, and warnings about their differences.

    Raises:
        NoSharedTaskError: there is no such task.
    """
    names = [name for name, _ in agents]
    if task_ids is not None:
        wanted = list(task_ids)
        grids = [score_grid(own, wanted) for _, own in agents]
        warnings = []
    else:
        tasks = [
            {answer.task_id for answer in own if answer.score is not None} for _, own in agents
        ]
        common = set.intersection(*tasks)
        if not common:
            every = "both" if len(agents) == 2 else "all of"
            raise NoSharedTaskError(
                f"no task has scores of {every} {' and '.join(names)}",
                f"evaluate {every.removesuffix(' of')} on the same tasks, or name tasks with --task_list, "
                "where missing answers count as 0",
            )
        alone = "alone" if len(agents) == 2 else "that others lack"
        warnings = [
            f"tasks of {name} {alone}, left out: {name_list(own - common)}"
            for name, own in zip(names, tasks, strict=True)
            if own - common
        ]
        grids = [
            score_grid(answer for answer in own if answer.task_id in common) for _, own in agents
        ]
    # A run in which the agent failed was judged by none.
    scored = [answer for grid in grids for answer in grid.scored_answers if answer.reason is None]
    return grids, [
        *warnings,
        *_unequal_runs(names, grids),
        *mixture_warnings(scored, "compared"),
    ]


def _metrics_of(grid: ScoreGrid) -> dict[str, SampledMetric]:
    """Return an agent's metrics by names that are the same for all numbers of runs."""
    pass_name = f"pass_at_{len(grid.runs)}"
    return {
        "pass_at_k" if name == pass_name else name: metric
        for name, metric in sampled_metrics(grid).items()
    }


def _unequal_runs(names: Sequence[str], grids: Sequence[ScoreGrid]) -> list[str]:
    runs = [len(grid.runs) for grid in grids]
    if len(set(runs)) == 1:
        return []
    listed = ", ".join(f"{name} {count}" for name, count in zip(names, runs, strict=True))
    return [
        "the agents have different numbers of runs, so that pass@k compares unequal chances, and rare "
        f"successes count for the agent with more runs: {listed}"
    ]


def _difference(first: SampledMetric, second: SampledMetric) -> Difference:
    """Return the second metric minus the first over the tasks where both have a value."""
    tasks = sorted(first.values.keys() & second.values.keys(), key=natural_key)
    sides = [[metric.of_task(task) for task in tasks] for metric in (first, second)]
    by_task = {task: other - one for task, one, other in zip(tasks, *sides, strict=True)}
    found = paired_test(list(by_task.values()), _limits(first.limits, second.limits))
    reason = too_few(len(tasks))
    if reason is None and found.interval is None:
        reason = "the difference is the same at every task"
    interval = None if reason else found.interval
    one, other = (fmean(side) if side else None for side in sides)
    sampled = SampledInterval(len(tasks), interval, reason, first.digits)
    return Difference(one, other, sampled, found.p_value, by_task)


def _limits(first: Limits, second: Limits) -> Limits:
    return None if first is None or second is None else (second[0] - first[1], second[1] - first[0])


# Ranking


class PowerJson(TypedDict):
    """``Power`` as ``mind2web2 compare --json`` prints it."""

    variation: dict[str, float | None]
    tasks_needed: int | None
    runs_needed: int | None
    detectable: float | None
    power: float


class TaskDifferenceJson(TypedDict):
    """A task with a large difference as ``mind2web2 compare --json`` prints it."""

    task_id: str
    difference: float


class PairJson(ComparedMetricJson):
    """Two agents in one metric as ``mind2web2 compare --json`` prints them."""

    first_agent: str
    second_agent: str
    power: PowerJson | None
    largest: list[TaskDifferenceJson]


class MetricRankingJson(TypedDict):
    """Agents by one metric as ``mind2web2 compare --json`` prints them."""

    values: dict[str, float]
    tied_with_best: list[str]
    differences: list[PairJson]


class RankingJson(TypedDict):
    """A ranking as ``mind2web2 compare --json`` prints it."""

    agents: list[str]
    num_tasks: int
    level: float
    method: str
    resamples: int
    seed: int
    metrics: dict[str, MetricRankingJson]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Power:
    """How much data would show a difference of the observed size with 80% power at the 5% level.

    Args:
        tasks_needed: with as many runs as there are; ``None`` where there is no difference, or where more
            than ``_MOST_TIMES_TASKS`` times the present tasks are needed, which is no plan.
        runs_needed: of the same tasks; ``None`` where none suffice, or where the variance between runs is
            unknown.
        detectable: the smallest difference that the present tasks and runs show; ``None`` where even 1, the
            largest that is possible, is too small.
    """

    variation: Variation
    tasks_needed: int | None
    runs_needed: int | None
    detectable: float | None

    def as_json(self) -> PowerJson:
        """Return it as it is printed."""
        return {
            "variation": asdict(self.variation),
            "tasks_needed": self.tasks_needed,
            "runs_needed": self.runs_needed,
            "detectable": self.detectable,
            "power": POWER,
        }


@dataclass(frozen=True, slots=True)
class PairResult:
    """Two agents' difference in one metric.

    Args:
        holm_p: the p-value, adjusted for all pairs of the ranking.
        power: ``None`` with fewer than two tasks.
    """

    first: str
    second: str
    found: Difference
    holm_p: float
    power: Power | None

    def largest(self) -> list[tuple[str, float]]:
        """Return the tasks with the largest differences."""
        moved = [entry for entry in self.found.by_task.items() if entry[1]]
        return sorted(moved, key=lambda entry: -abs(entry[1]))[:_TASKS_SHOWN]

    def is_worse_by(self, margin: float) -> bool:
        """Tell whether the second agent is shown to be worse than the first by more than a margin.

        An agent that is tied with the first is not.
        """
        if self.holm_p >= 1 - LEVEL:
            return False
        interval = self.found.sampled.interval
        # Without one, the loss is the same at each of enough tasks.
        least_loss = (self.found.value or 0.0) if interval is None else interval.high
        return least_loss < -margin

    def as_json(self) -> PairJson:
        """Return it as it is printed."""
        return {
            "first_agent": self.first,
            "second_agent": self.second,
            **self.found.figures().as_json(),
            "p_holm": round(self.holm_p, _P_DIGITS),
            "power": None if self.power is None else self.power.as_json(),
            "largest": [
                {"task_id": task, "difference": round(value, 4)} for task, value in self.largest()
            ],
        }


@dataclass(frozen=True, slots=True)
class MetricRanking:
    """Agents by one metric.

    Args:
        values: from the best agent down.
        pairs: each agent with each one behind it in the given order.
        tied: agents that no test separates from the best one, and the best.
    """

    values: Mapping[str, float]
    pairs: tuple[PairResult, ...]
    tied: tuple[str, ...]

    def against(self, first: str) -> dict[str, PairResult]:
        """Return the pairs of the agent that was given first, by the other agent."""
        return {pair.second: pair for pair in self.pairs if pair.first == first}

    def as_json(self) -> MetricRankingJson:
        """Return it as it is printed."""
        return {
            "values": {agent: round(one, 4) for agent, one in self.values.items()},
            "tied_with_best": list(self.tied),
            "differences": [pair.as_json() for pair in self.pairs],
        }


@dataclass(frozen=True, slots=True)
class Ranking:
    """Agents over the same tasks, in the given order."""

    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    metrics: Mapping[str, MetricRanking]
    warnings: tuple[str, ...]

    def as_json(self) -> RankingJson:
        """Return it as it is printed."""
        return {
            "agents": list(self.agents),
            "num_tasks": len(self.tasks),
            "level": LEVEL,
            "method": METHOD,
            "resamples": DRAWS,
            "seed": SEED,
            "metrics": {name: found.as_json() for name, found in self.metrics.items()},
            "warnings": list(self.warnings),
        }


def ranking(
    agents: Sequence[Agent],
    task_ids: Iterable[str] | None = None,
    *,
    allow_unfair: bool = False,
) -> Ranking:
    """Rank agents by partial completion and by success rate.

    Args:
        task_ids: the tasks that count, with 0 for what is missing; by default those that all have a score at.
        allow_unfair: compare also scores of different judge models, or of different scripts at every task.

    Raises:
        UsageError: no task is shared, or the scores of two agents cannot be compared.
    """
    grids, warnings = _shared_grids(agents, task_ids)
    by_agent = dict(zip((name for name, _ in agents), grids, strict=True))
    if not allow_unfair:
        _check_comparable(by_agent)
    metrics = {name: _metrics_of(grid) for name, grid in by_agent.items()}
    return Ranking(
        tuple(by_agent),
        tuple(grids[0].tasks),
        {name: _ranked({agent: own[name] for agent, own in metrics.items()}) for name in _RANKED},
        (*warnings, *_missing(by_agent), *_other_capture_days(by_agent)),
    )


def _ranked(metrics: Mapping[str, SampledMetric]) -> MetricRanking:
    pairs = [
        (first, second, _difference(metrics[first], metrics[second]))
        for first, second in combinations(metrics, 2)
    ]
    adjusted = holm([1.0 if found.p_value is None else found.p_value for *_, found in pairs])
    results = tuple(
        PairResult(
            first,
            second,
            found,
            p_value,
            _power(metrics[first], metrics[second], found),
        )
        for (first, second, found), p_value in zip(pairs, adjusted, strict=True)
    )
    values = {}
    for pair in results:
        values[pair.first], values[pair.second] = (
            pair.found.first or 0.0,
            pair.found.second or 0.0,
        )
    ordered = dict(sorted(values.items(), key=lambda entry: -entry[1]))
    best = next(iter(ordered))
    beaten = {
        pair.first if pair.second == best else pair.second
        for pair in results
        if best in (pair.first, pair.second) and pair.holm_p < 1 - LEVEL
    }
    return MetricRanking(ordered, results, tuple(name for name in ordered if name not in beaten))


def _power(first: SampledMetric, second: SampledMetric, found: Difference) -> Power | None:
    if len(found.by_task) < 2 or found.value is None:
        return None
    split = variation(
        [
            (
                [value for own in first.values[task].values() for value in own],
                [value for own in second.values[task].values() for value in own],
            )
            for task in found.by_task
        ]
    )
    tasks = len(found.by_task)
    detectable = detectable_difference(tasks, split.of_difference)
    needed = tasks_needed(found.value, split.of_difference)
    if needed is not None and needed > _MOST_TIMES_TASKS * tasks:
        needed = None
    return Power(
        split,
        needed,
        runs_needed(found.value, tasks, split),
        None if detectable is None or detectable > 1 else detectable,
    )


def _check_comparable(grids: Mapping[str, ScoreGrid]) -> None:
    for (first, one), (second, other) in combinations(grids.items(), 2):
        judges = [{answer.judge_model for answer in grid.scored_answers} for grid in (one, other)]
        if None not in judges[0] | judges[1] and all(judges) and not judges[0] & judges[1]:
            listed = [name_list(_judge_names(grid)) for grid in (one, other)]
            raise UsageError(
                f"{first} was judged by {listed[0]} and {second} by {listed[1]}: their difference would be "
                "the judges' as well; judge both alike, or compare all the same with --allow_unfair"
            )
        scripts = [_scripts(grid.scored_answers) for grid in (one, other)]
        shared = scripts[0].keys() & scripts[1].keys()
        if shared and all(not scripts[0][task] & scripts[1][task] for task in shared):
            raise UsageError(
                f"{first} and {second} were judged by different scripts at every task; evaluate both with "
                "one version of the scripts, or compare all the same with --allow_unfair"
            )


def _judge_names(grid: ScoreGrid) -> list[str]:
    """Return the models of the judges; two judges, of which the strong one gives the model, as a cascade."""
    names = set()
    for answer in grid.scored_answers:
        first = answer.facts.first
        model = str(answer.judge_model)
        names.add(model if first is None else f"the cascade {first.model},{model}")
    return sorted(names)


def _scripts(answers: Iterable[ScoredAnswer]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for answer in answers:
        if answer.facts.script_sha256 is not None:
            found.setdefault(answer.task_id, set()).add(answer.facts.script_sha256)
    return found


def _missing(grids: Mapping[str, ScoreGrid]) -> list[str]:
    counts = {name: len(grid.missing) for name, grid in grids.items() if grid.missing}
    if not counts:
        return []
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    treatment = "counted as 0" if next(iter(grids.values())).missing_counted_as_zero else "left out"
    return [f"answers without a score at the compared tasks, {treatment}: {listed}"]


def _other_capture_days(grids: Mapping[str, ScoreGrid]) -> list[str]:
    """Return a warning where the agents' pages were captured in ranges of days without a common day."""
    days = {
        name: sorted(day for answer in grid.scored_answers for day in answer.facts.capture_days)
        for name, grid in grids.items()
    }
    known = {name: (found[0], found[-1]) for name, found in days.items() if found}
    if len(known) < 2:
        return []
    last_first_day = max(first for first, _ in known.values())
    first_last_day = min(last for _, last in known.values())
    if last_first_day <= first_last_day:
        return []
    listed = "; ".join(f"{name} {low} to {high}" for name, (low, high) in known.items())
    return [f"pages were captured on different days: {listed}"]
