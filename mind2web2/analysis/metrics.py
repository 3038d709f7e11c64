"""An agent's metrics: partial completion, success rate, pass@k, answer length and time; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import get_args

from mind2web2.analysis.sampled_metrics import (
    intervals_of,
    metric_intervals,
    sample_metrics,
)
from mind2web2.analysis.score_matrix import (
    ScoreGrid,
    judge_models,
    mixture_warnings,
    score_grid,
    scores_of,
)
from mind2web2.results.agent_summary import (
    AgentSummary,
    ClaimCounts,
    Ends,
    Intervals,
    ListedAnswer,
    MissingBounds,
    RunFigures,
    TaskFigures,
    TaskMeans,
    TheseTasks,
    VerdictCounts,
)
from mind2web2.results.claim_facts import QUOTE_MATCHES, ClaimFacts, Reservation
from mind2web2.results.scored_answer import ResultFacts, ScoredAnswer
from mind2web2.rubric.verdicts import QuoteMatch, is_success
from mind2web2.statistics.uncertainty import (
    LEVEL,
    METHOD,
    MIN_TASKS,
    RESAMPLES,
    SEED,
    rounded,
    student_quantile,
)
from mind2web2.statistics.variance import VarianceFigures, nested_variance, pooled_variance

# Digits after the point as published (file-layouts.md).
_SCORE_DIGITS = 6
_WORD_DIGITS = 1
_TIME_DIGITS = 1
_OTHER_DIGITS = 4
_RESERVATIONS: tuple[Reservation, ...] = get_args(Reservation)


def agent_metrics(
    agent_name: str,
    answers: Iterable[ScoredAnswer],
    task_ids: Iterable[str] | None = None,
    caution: str | None = None,
) -> AgentSummary:
    """Return an agent's metrics as they stand in ``summary.json``.

    A run is all answers of one name, over all tasks; averages are over the tasks of each run, then
    over the runs. Where tasks have different numbers of answers:

    - With ``task_ids``, every run spans exactly these tasks. Runs are all answer names found in
      them, and an answer that a run lacks, or that has no score, counts as 0.
    - Without, a run spans the tasks in which it has a score, and runs without any score are not
      counted, so that pass@k never claims more attempts than were judged. Tasks without any score
      are not counted either. Runs then differ in their tasks, and a warning says so.

    Missing answers are listed by name in both cases, and the order of the answers does not matter.
    Word counts and times average the known values. A ``caution`` becomes the first warning.

    Raises:
        ValueError: two answers have the same task and name.
    """
    grid = score_grid(answers, task_ids)
    runs = {run: _run_means(grid, run) for run in grid.runs}
    tasks = _task_figures(grid)
    judged = grid.judged_answers
    scores = _spread([run.score for run in runs.values()], grid.mean_of_none)
    successes = _spread([run.success_rate for run in runs.values()], grid.mean_of_none)
    words = _spread([run.words for run in runs.values()], None)
    time_s = _mean(answer.time_s for answer in grid.table.values())
    return AgentSummary(
        agent_name=agent_name,
        num_tasks=len(grid.tasks),
        num_runs=len(grid.runs),
        avg_score=rounded(scores.mean, _SCORE_DIGITS),
        avg_score_std=rounded(scores.deviation, _OTHER_DIGITS),
        success_rate=rounded(successes.mean, _OTHER_DIGITS),
        success_rate_std=rounded(successes.deviation, _OTHER_DIGITS),
        pass_at_k=rounded(_mean(float(task.is_passed) for task in tasks.values()), _OTHER_DIGITS),
        avg_answer_word_count=rounded(words.mean, _WORD_DIGITS),
        avg_answer_word_count_std=rounded(words.deviation, _WORD_DIGITS),
        avg_time_seconds=rounded(time_s, _TIME_DIGITS),
        per_run={name: run.figures() for name, run in runs.items()},
        tasks=tasks,
        judge_models=judge_models(judged),
        missing=grid.missing,
        missing_counted_as_zero=grid.missing_counted_as_zero,
        warnings=_warnings(grid, judged, caution),
        intervals=_intervals(grid),
        verdicts=verdict_counts(judged),
        over_tasks=_task_means(grid),
        these_tasks=_these_tasks(grid),
        missing_bounds=_missing_bounds(grid),
        variation=_variation(grid),
    )


def _warnings(
    grid: ScoreGrid,
    judged: Sequence[ScoredAnswer],
    caution: str | None,
) -> tuple[str, ...]:
    warnings = [] if caution is None else [caution]
    warnings += grid.warnings
    warnings += _failed_run_warnings(grid)
    warnings += mixture_warnings(judged)
    return tuple(warnings)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


# By run and by task


@dataclass(frozen=True, slots=True)
class _Means:
    """The averages of one run over its tasks."""

    num_tasks: int
    score: float | None
    success_rate: float | None
    words: float | None

    def figures(self) -> RunFigures:
        """Return them as they are published."""
        return RunFigures(
            num_tasks=self.num_tasks,
            avg_score=rounded(self.score, _SCORE_DIGITS),
            success_rate=rounded(self.success_rate, _OTHER_DIGITS),
            avg_word_count=rounded(self.words, _WORD_DIGITS),
        )


def _run_means(grid: ScoreGrid, run: str) -> _Means:
    scores = [score for (_, name), score in grid.scores.items() if name == run]
    answers = [answer for (_, name), answer in grid.table.items() if name == run]
    return _Means(
        len(scores),
        _mean(scores),
        _mean(float(is_success(score)) for score in scores),
        _mean(answer.word_count for answer in answers),
    )


@dataclass(frozen=True, slots=True)
class _Spread:
    mean: float | None
    deviation: float | None


def _spread(values: Iterable[float | None], nothing: float | None) -> _Spread:
    """Return mean and deviation over runs, or what stands for them where no run has a value."""
    known = [value for value in values if value is not None]
    if not known:
        return _Spread(nothing, nothing)
    return _Spread(fmean(known), pstdev(known))


def _task_figures(grid: ScoreGrid) -> dict[str, TaskFigures]:
    figures = {}
    for task in grid.tasks:
        places = [(task, run) for run in grid.runs]
        scores = [grid.scores[place] for place in places if place in grid.scores]
        answers = [grid.table[place] for place in places if place in grid.table]
        mean = fmean(scores) if scores else grid.mean_of_none
        figures[task] = TaskFigures(
            answers=_scored_answers(answers),
            best_score=rounded(max(scores, default=grid.mean_of_none), _OTHER_DIGITS),
            avg_score=rounded(mean, _SCORE_DIGITS),
            is_passed=any(map(is_success, scores)),
        )
    return figures


def _scored_answers(answers: Iterable[ScoredAnswer]) -> tuple[ListedAnswer, ...]:
    """Return the answers that have a score."""
    return tuple(
        ListedAnswer(
            answer_name=answer.answer_name,
            score=answer.score,
            success=is_success(answer.score),
            word_count=answer.word_count,
        )
        for answer in answers
        if answer.score is not None
    )


def _failed_run_warnings(grid: ScoreGrid) -> list[str]:
    failed = [
        f"{answer.task_id}/{answer.answer_name.removesuffix('.md')} ({answer.reason})"
        for answer in grid.scored_answers
        if answer.reason is not None
    ]
    counted = f"runs in which the agent failed: {len(failed)}, counted as 0: {'; '.join(failed)}"
    return [counted] if failed else []


# Ranges


def _intervals(grid: ScoreGrid) -> Intervals:
    by_name = metric_intervals(grid)
    return Intervals(
        level=LEVEL,
        method=METHOD,
        resamples=RESAMPLES,
        seed=SEED,
        metrics={name: interval.figures() for name, interval in by_name.items()},
    )


@dataclass(frozen=True, slots=True)
class _Averages:
    score: float
    success_rate: float


def _lacks_scores(grid: ScoreGrid) -> bool:
    """Tell whether some run lacks a task, so that means over tasks differ from those over runs."""
    return 0 < len(grid.scores) < len(grid.tasks) * len(grid.runs)


def _ends(low: float, high: float) -> Ends:
    return round(low, _OTHER_DIGITS), round(high, _OTHER_DIGITS)


def _task_means(grid: ScoreGrid) -> TaskMeans | None:
    """Return the means over tasks.

    ``None`` where every run has all tasks, as they are those over runs.
    """
    if not _lacks_scores(grid):
        return None
    of_runs = sample_metrics(grid)
    metrics = {name: of_runs[name].by_task() for name in ("avg_score", "success_rate")}
    means = {
        name: round(metric.over_all().value, metric.digits) for name, metric in metrics.items()
    }
    intervals = intervals_of(metrics)
    return TaskMeans(
        avg_score=means["avg_score"],
        success_rate=means["success_rate"],
        intervals={name: interval.figures() for name, interval in intervals.items()},
    )


def _these_tasks(grid: ScoreGrid) -> TheseTasks | None:
    """Return the interval for the same tasks, ``None`` where too few tasks have several answers."""
    by_task: dict[str, list[float]] = {}
    for (task, _), score in grid.scores.items():
        by_task.setdefault(task, []).append(score)
    degrees = len(grid.scores) - len(by_task)
    if degrees < MIN_TASKS - 1:
        return None
    # Tasks with one answer vary like the others.
    of_answer = pooled_variance(list(by_task.values()))
    assert of_answer is not None, "some tasks have several answers"
    shares = sum(1 / len(scores) for scores in by_task.values())
    of_mean = of_answer * shares / len(by_task) ** 2
    reach = student_quantile((1 + LEVEL) / 2, degrees) * math.sqrt(of_mean)
    mean = fmean(fmean(scores) for scores in by_task.values())
    return TheseTasks(
        low=round(max(0.0, mean - reach), _OTHER_DIGITS),
        high=round(min(1.0, mean + reach), _OTHER_DIGITS),
    )


def _missing_bounds(grid: ScoreGrid) -> MissingBounds | None:
    """Return the means with missing scores as 0 and as 1, ``None`` where none is missing."""
    if not grid.missing or not grid.runs:
        return None
    tasks = list(dict.fromkeys([*grid.tasks, *(answer.task_id for answer in grid.missing)]))
    scores = scores_of(grid.table)
    # Runs without a score at any task are counted as well.
    runs = list(dict.fromkeys(run for _, run in grid.table))
    low, high = (_fill_missing(scores, tasks, runs, filler) for filler in (0.0, 1.0))
    return MissingBounds(
        avg_score=_ends(low.score, high.score),
        success_rate=_ends(low.success_rate, high.success_rate),
    )


def _fill_missing(
    scores: Mapping[tuple[str, str], float],
    tasks: Iterable[str],
    runs: Iterable[str],
    filler: float,
) -> _Averages:
    """Return the means over tasks with each missing score as the filler."""
    means = []
    rates = []
    for task in tasks:
        row = [scores.get((task, run), filler) for run in runs]
        means.append(fmean(row))
        rates.append(fmean(float(is_success(score)) for score in row))
    return _Averages(fmean(means), fmean(rates))


def _variation(grid: ScoreGrid) -> VarianceFigures | None:
    by_task: dict[str, list[list[float]]] = {}
    for (task, _), score in grid.scores.items():
        by_task.setdefault(task, []).append([score])
    variance_parts = nested_variance(list(by_task.values()))
    return None if variance_parts is None else variance_parts.figures()


def verdict_counts(answers: Sequence[ScoredAnswer]) -> VerdictCounts:
    """Return how many verdicts behind these answers' scores are doubtful.

    The counts are as ``summary.json`` has them.
    """
    tasks: dict[str, list[ClaimFacts]] = {}
    extractions: Counter[Reservation] = Counter()
    for answer in answers:
        tasks.setdefault(answer.task_id, []).extend(answer.facts.claims)
        for reservations in answer.facts.extractions:
            extractions.update(reservations)

    def names(applies: Callable[[ResultFacts], bool]) -> tuple[str, ...]:
        return tuple(f"{one.task_id}/{one.answer_name}" for one in answers if applies(one.facts))

    counts = _claim_counts([claim for claims in tasks.values() for claim in claims])
    return VerdictCounts(
        claims=counts.claims,
        reservations=counts.reservations,
        voted=counts.voted,
        split=counts.split,
        quotes=counts.quotes,
        tasks={task: _claim_counts(claims) for task, claims in tasks.items()},
        extractions={kind: extractions[kind] for kind in _RESERVATIONS},
        in_doubt=names(lambda facts: facts.in_doubt),
        flagged_answers=names(lambda facts: facts.is_flagged),
        treeless=names(lambda facts: facts.is_treeless),
        off_tree=names(lambda facts: facts.is_off_tree),
        unexplained=names(lambda facts: not facts.is_explained and not facts.is_treeless),
    )


def _claim_counts(claims: Sequence[ClaimFacts]) -> ClaimCounts:
    reservations: Counter[Reservation] = Counter()
    quotes: Counter[QuoteMatch] = Counter()
    voted = split = 0
    for claim in claims:
        reservations.update(claim.reservations)
        quotes.update(claim.quotes)
        voted += claim.is_voted
        split += claim.is_split
    return ClaimCounts(
        claims=len(claims),
        reservations={kind: reservations[kind] for kind in _RESERVATIONS},
        voted=voted,
        split=split,
        quotes={match: quotes[match] for match in QUOTE_MATCHES},
    )
