"""An agent's metrics: partial completion, success rate, pass@k, answer length and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev
from typing import Any, TypeGuard

from mind2web2.utils.names import name_list, natural_key

SCORE_DIGITS = 4
WORD_DIGITS = 1
TIME_DIGITS = 1
MAX_TIME_S = 1e9

NO_ANSWER = "no such answer, though other tasks have one of this name"
NO_RUNS = "no answer at all"
NO_RESULT = "no result"
UNKNOWN_JUDGE = "unknown"


def is_score(value: object) -> TypeGuard[float]:
    """Tell whether a value from a file is a score: a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def is_time_s(value: object) -> TypeGuard[float]:
    """Tell whether a value from a file is a plausible number of seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_TIME_S


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """One answer and what is known of it; ``score`` is ``None`` where it has no result.

    Args:
        task_id: the task.
        answer_name: the answer's file name; answers of one name are one run.
        score: the root's score.
        word_count: whitespace-separated words of the answer.
        time_s: what the agent took for it.
        judge_model: the model that judged it.
        reason: why there is no score, in one line.

    Raises:
        ValueError: the score is not a number from 0 to 1.
    """

    task_id: str
    answer_name: str
    score: float | None = None
    word_count: int | None = None
    time_s: float | None = None
    judge_model: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.score is not None and not is_score(self.score):
            raise ValueError(f"score {self.score} of {self.task_id}/{self.answer_name} is not within 0 and 1")


@dataclass(frozen=True, slots=True)
class MissingAnswer:
    """An answer that has no score, or that does not exist; ``answer_name`` is ``None`` if a task has none."""

    task_id: str
    answer_name: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """The averages of one run over ``num_tasks`` tasks."""

    num_tasks: int
    avg_score: float | None
    success_rate: float | None
    avg_word_count: float | None


@dataclass(frozen=True, slots=True)
class TaskMetrics:
    """One task over the runs: ``answers`` of them have a score, ``passed`` says that one scored 1."""

    answers: int
    best_score: float | None
    avg_score: float | None
    passed: bool


@dataclass(frozen=True, slots=True)
class AgentMetrics:
    """What an agent reached, unrounded; ``None`` stands for a value that nothing is known about.

    Args:
        missing: every answer without a score, by name.
        missing_counted_as_zero: whether those count as 0, else they are left out of the averages.
        warnings: what makes the numbers less than they seem, one line each.
    """

    agent_name: str
    num_tasks: int
    num_runs: int
    avg_score: float | None
    avg_score_std: float | None
    success_rate: float | None
    success_rate_std: float | None
    pass_at_k: float | None
    avg_answer_word_count: float | None
    avg_answer_word_count_std: float | None
    avg_time_s: float | None
    per_run: Mapping[str, RunMetrics]
    tasks: Mapping[str, TaskMetrics]
    judge_models: Mapping[str, int]
    missing: tuple[MissingAnswer, ...]
    missing_counted_as_zero: bool
    warnings: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """Return the content of the agent's ``summary.json``, rounded as published."""
        return {
            "agent_name": self.agent_name,
            "num_tasks": self.num_tasks,
            "num_runs": self.num_runs,
            "avg_score": _rounded(self.avg_score, SCORE_DIGITS),
            "avg_score_std": _rounded(self.avg_score_std, SCORE_DIGITS),
            "success_rate": _rounded(self.success_rate, SCORE_DIGITS),
            "success_rate_std": _rounded(self.success_rate_std, SCORE_DIGITS),
            f"pass_at_{self.num_runs}": _rounded(self.pass_at_k, SCORE_DIGITS),
            "avg_answer_word_count": _rounded(self.avg_answer_word_count, WORD_DIGITS),
            "avg_answer_word_count_std": _rounded(self.avg_answer_word_count_std, WORD_DIGITS),
            "avg_time_seconds": _rounded(self.avg_time_s, TIME_DIGITS),
            "per_run": {name: _run_summary(run) for name, run in self.per_run.items()},
            "tasks": {task_id: _task_summary(task) for task_id, task in self.tasks.items()},
            "judge_models": dict(self.judge_models),
            "missing": [asdict(answer) for answer in self.missing],
            "missing_counted_as_zero": self.missing_counted_as_zero,
            "warnings": list(self.warnings),
        }


def agent_metrics(
    agent_name: str, answers: Iterable[ScoredAnswer], task_ids: Iterable[str] | None = None
) -> AgentMetrics:
    """Average an agent's answers over the tasks of each run, then over the runs.

    A run is all answers of one name, over all tasks. Where tasks have different numbers of answers:

    - With ``task_ids``, every run spans exactly these tasks. Runs are all answer names seen in them, and
      an answer that a run lacks, or that has no score, counts as 0.
    - Without, a run spans the tasks in which it has a score, and runs without any score are not counted,
      so that pass@k never claims more attempts than were judged. Tasks without any score are not counted
      either. Runs then differ in their tasks, which a warning says.

    Either way what is missing is listed by name, and nothing depends on the order of the answers.
    Word counts and times average what is known of them.

    Raises:
        ValueError: two answers have the same task and name.
    """
    table = _table(answers)
    if task_ids is None:
        return _metrics(agent_name, _grid_of_scored(table))
    return _metrics(agent_name, _grid_of_tasks(table, _ordered(task_ids)))


# By task and answer name, both in natural order.
_Table = Mapping[tuple[str, str], ScoredAnswer]


@dataclass(frozen=True, slots=True)
class _Grid:
    """Which scores count in which runs and tasks."""

    table: _Table
    scores: Mapping[tuple[str, str], float]
    tasks: Sequence[str]
    runs: Sequence[str]
    missing: tuple[MissingAnswer, ...]
    missing_counted_as_zero: bool
    warnings: tuple[str, ...]


def _table(answers: Iterable[ScoredAnswer]) -> _Table:
    found: dict[tuple[str, str], ScoredAnswer] = {}
    for answer in answers:
        place = (answer.task_id, answer.answer_name)
        if place in found:
            raise ValueError(f"answer {answer.task_id}/{answer.answer_name} is given twice")
        found[place] = answer
    in_order = sorted(found, key=lambda place: (natural_key(place[0]), natural_key(place[1])))
    return {place: found[place] for place in in_order}


def _grid_of_scored(table: _Table) -> _Grid:
    scores = {place: answer.score for place, answer in table.items() if answer.score is not None}
    missing = _missing(table, _ordered(task for task, _ in table), _ordered(run for _, run in table))
    tasks = _ordered(task for task, _ in scores)
    sizes = Counter(run for _, run in scores)
    runs = _ordered(sizes)
    warnings = [f"answers without a score: {len(missing)}, not counted in the averages"] if missing else []
    if any(size < len(tasks) for size in sizes.values()):
        listed = ", ".join(f"{run} {sizes[run]}" for run in runs)
        warnings.append(f"runs span different tasks, out of {len(tasks)}: {listed}")
    return _Grid(table, scores, tasks, runs, missing, False, tuple(warnings))


def _grid_of_tasks(table: _Table, tasks: Sequence[str]) -> _Grid:
    wanted = set(tasks)
    outside = _ordered(task for task, _ in table if task not in wanted)
    table = {place: answer for place, answer in table.items() if place[0] in wanted}
    runs = _ordered(run for _, run in table)
    scores = {(task, run): _score_or_zero(table.get((task, run))) for task in tasks for run in runs}
    missing = _missing(table, tasks, runs)
    warnings = [f"answers without a score: {len(missing)}, counted as 0"] if missing else []
    if outside:
        warnings.append(f"tasks not in the task list, left out: {name_list(outside)}")
    return _Grid(table, scores, tasks, runs, missing, True, tuple(warnings))


def _metrics(agent_name: str, grid: _Grid) -> AgentMetrics:
    per_run, per_task = _per_run(grid), _per_task(grid)
    judge_models = _judge_models(grid.table)
    # A task list without a single answer is a failure at every task, not an unknown result.
    nothing = 0.0 if grid.missing_counted_as_zero and grid.tasks else None
    avg_score, avg_score_std = _over_runs([run.avg_score for run in per_run.values()], nothing)
    success_rate, success_rate_std = _over_runs([run.success_rate for run in per_run.values()], nothing)
    words, words_std = _over_runs([run.avg_word_count for run in per_run.values()], None)
    return AgentMetrics(
        agent_name=agent_name,
        num_tasks=len(grid.tasks),
        num_runs=len(grid.runs),
        avg_score=avg_score,
        avg_score_std=avg_score_std,
        success_rate=success_rate,
        success_rate_std=success_rate_std,
        pass_at_k=_mean(float(task.passed) for task in per_task.values()),
        avg_answer_word_count=words,
        avg_answer_word_count_std=words_std,
        avg_time_s=_mean(answer.time_s for answer in grid.table.values()),
        per_run=per_run,
        tasks=per_task,
        judge_models=judge_models,
        missing=grid.missing,
        missing_counted_as_zero=grid.missing_counted_as_zero,
        warnings=(*grid.warnings, *_judge_warning(judge_models)),
    )


def _per_run(grid: _Grid) -> dict[str, RunMetrics]:
    scores: dict[str, list[float]] = {run: [] for run in grid.runs}
    for (_, run), score in grid.scores.items():
        scores[run].append(score)
    words: dict[str, list[int | None]] = {run: [] for run in grid.runs}
    for (_, run), answer in grid.table.items():
        words.get(run, []).append(answer.word_count)
    return {
        run: RunMetrics(
            num_tasks=len(scores[run]),
            avg_score=_mean(scores[run]),
            success_rate=_mean(float(score == 1.0) for score in scores[run]),
            avg_word_count=_mean(words[run]),
        )
        for run in grid.runs
    }


def _per_task(grid: _Grid) -> dict[str, TaskMetrics]:
    scores: dict[str, list[float]] = {task: [] for task in grid.tasks}
    for (task, _), score in grid.scores.items():
        scores[task].append(score)
    scored = Counter(task for (task, _), answer in grid.table.items() if answer.score is not None)
    nothing = 0.0 if grid.missing_counted_as_zero else None
    return {
        task: TaskMetrics(
            answers=scored[task],
            best_score=max(scores[task], default=nothing),
            avg_score=_mean(scores[task]) if scores[task] else nothing,
            passed=1.0 in scores[task],
        )
        for task in grid.tasks
    }


def _missing(table: _Table, tasks: Sequence[str], runs: Sequence[str]) -> tuple[MissingAnswer, ...]:
    answered = {task for task, _ in table}
    found: list[MissingAnswer] = []
    for task in tasks:
        if task not in answered:
            found.append(MissingAnswer(task, None, NO_RUNS))
            continue
        for run in runs:
            answer = table.get((task, run))
            if answer is None:
                found.append(MissingAnswer(task, run, NO_ANSWER))
            elif answer.score is None:
                found.append(MissingAnswer(task, run, answer.reason or NO_RESULT))
    return tuple(found)


def _judge_models(table: _Table) -> dict[str, int]:
    scored = [answer for answer in table.values() if answer.score is not None]
    return dict(sorted(Counter(answer.judge_model or UNKNOWN_JUDGE for answer in scored).items()))


def _judge_warning(judge_models: Mapping[str, int]) -> list[str]:
    if len(judge_models) < 2:
        return []
    listed = ", ".join(f"{model} ({count} answers)" for model, count in judge_models.items())
    return [f"scores of different judge models are averaged: {listed}; judge all answers with one model"]


def _over_runs(values: Sequence[float | None], nothing: float | None) -> tuple[float | None, float | None]:
    known = [value for value in values if value is not None]
    return (fmean(known), pstdev(known)) if known else (nothing, nothing)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _score_or_zero(answer: ScoredAnswer | None) -> float:
    return 0.0 if answer is None or answer.score is None else answer.score


def _ordered(names: Iterable[str]) -> list[str]:
    return sorted(set(names), key=natural_key)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _run_summary(run: RunMetrics) -> dict[str, Any]:
    return {
        "num_tasks": run.num_tasks,
        "avg_score": _rounded(run.avg_score, SCORE_DIGITS),
        "success_rate": _rounded(run.success_rate, SCORE_DIGITS),
        "avg_word_count": _rounded(run.avg_word_count, WORD_DIGITS),
    }


def _task_summary(task: TaskMetrics) -> dict[str, Any]:
    return {
        "answers": task.answers,
        "best_score": _rounded(task.best_score, SCORE_DIGITS),
        "avg_score": _rounded(task.avg_score, SCORE_DIGITS),
        "pass": task.passed,
    }
