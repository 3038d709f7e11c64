"""An agent's scores by task and run, the missing ones, and warnings about those made differently.

Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mind2web2.results.agent_summary import MissingAnswer
from mind2web2.results.scored_answer import (
    NO_RESULT,
    ScoredAnswer,
    scored_answers,
    scored_by_judge,
    served_names,
)
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.text import counted

NO_ANSWER = "missing, though other tasks have an answer of this name"
NO_RUNS = "no answer at all"

UNKNOWN_JUDGE = "unknown"
_MAX_KINDS_SHOWN = 6


# By task and answer name, both in natural order.
_Table = Mapping[tuple[str, str], ScoredAnswer]


@dataclass(frozen=True, slots=True)
class ScoreGrid:
    """The scores that count, by task and run.

    Args:
        table: all answers, with and without a score, by task and answer name.
        scores: the scores in the averages, by task and run.
        missing: every answer without a score.
        missing_counted_as_zero: missing answers count as 0; otherwise the averages leave them out.
        warnings: reservations about the averages, one line each.
    """

    table: _Table
    scores: Mapping[tuple[str, str], float]
    tasks: Sequence[str]
    runs: Sequence[str]
    missing: tuple[MissingAnswer, ...]
    missing_counted_as_zero: bool
    warnings: tuple[str, ...]

    @property
    def mean_of_none(self) -> float | None:
        """Return the mean where nothing was answered: a failure at every task, or unknown."""
        return 0.0 if self.missing_counted_as_zero and self.tasks else None

    @property
    def scored_answers(self) -> list[ScoredAnswer]:
        """Return the answers that have a score of their own."""
        return scored_answers(self.table.values())

    @property
    def judged_answers(self) -> list[ScoredAnswer]:
        """Return the answers with a score by a judge."""
        return scored_by_judge(self.table.values())


def score_grid(answers: Iterable[ScoredAnswer], task_ids: Iterable[str] | None = None) -> ScoreGrid:
    """Lay out an agent's scores by tasks and runs, as ``agent_metrics`` averages them.

    Raises:
        ValueError: two answers have the same task and name.
    """
    table = _table(answers)
    if task_ids is None:
        return _grid_of_scored(table)
    return _grid_of_tasks(table, _in_natural_order(task_ids))


def _table(answers: Iterable[ScoredAnswer]) -> _Table:
    answers_by_place: dict[tuple[str, str], ScoredAnswer] = {}
    for answer in answers:
        if answer.place in answers_by_place:
            raise ValueError(f"answer {answer.task_id}/{answer.answer_name} is given twice")
        answers_by_place[answer.place] = answer
    in_order = sorted(answers_by_place, key=lambda place: tuple(map(natural_key, place)))
    return {place: answers_by_place[place] for place in in_order}


def _grid_of_scored(table: _Table) -> ScoreGrid:
    scores = scores_of(table)
    known_tasks = _in_natural_order(task for task, _ in table)
    known_runs = _in_natural_order(run for _, run in table)
    missing = _missing(table, known_tasks, known_runs)
    tasks = _in_natural_order(task for task, _ in scores)
    runs = _in_natural_order(run for _, run in scores)
    warnings = _missing_warnings(missing, "not counted in the averages")
    warnings += _unequal_chances(table, tasks, runs)
    return ScoreGrid(table, scores, tasks, runs, missing, False, tuple(warnings))


def _grid_of_tasks(table: _Table, tasks: Sequence[str]) -> ScoreGrid:
    wanted = set(tasks)
    outside = _in_natural_order(task for task, _ in table if task not in wanted)
    table = {place: answer for place, answer in table.items() if place[0] in wanted}
    runs = _in_natural_order(run for _, run in table)
    known_scores = scores_of(table)
    scores = {}
    for task in tasks:
        for run in runs:
            # A missing answer counts as 0.
            scores[task, run] = known_scores.get((task, run), 0.0)
    missing = _missing(table, tasks, runs)
    warnings = _missing_warnings(missing, "counted as 0")
    if outside:
        warnings.append(f"tasks that were not asked for, left out: {name_list(outside)}")
    warnings += _unequal_chances(table, tasks, runs)
    return ScoreGrid(table, scores, tasks, runs, missing, True, tuple(warnings))


def scores_of(table: _Table) -> dict[tuple[str, str], float]:
    """Return the scores of the answers that have one, by task and answer name."""
    scores = {}
    for place, answer in table.items():
        if answer.score is not None:
            scores[place] = answer.score
    return scores


def _unequal_chances(table: _Table, tasks: Sequence[str], runs: Sequence[str]) -> list[str]:
    """Return a warning that names the tasks with fewer scores than runs."""
    scored = Counter(task for task, _ in scores_of(table))
    count = len(runs)
    fewer = []
    for task in tasks:
        if scored[task] < count:
            fewer.append(f"{task} {scored[task]}")
    if not fewer:
        return []
    return [f"pass@{count} rests on fewer than {count} answers at: {name_list(fewer)}"]


def _missing(table: _Table, tasks: Sequence[str], runs: Sequence[str]) -> tuple[MissingAnswer, ...]:
    answered = {task for task, _ in table}
    missing: list[MissingAnswer] = []
    for task in tasks:
        # An agent without any answer has no runs either.
        for run in runs or ["answer_1.md"]:
            answer = table.get((task, run))
            if answer is None:
                reason = NO_ANSWER if task in answered else NO_RUNS
                missing.append(MissingAnswer(task, run, reason))
            elif answer.score is None:
                missing.append(MissingAnswer(task, run, answer.reason or NO_RESULT))
    return tuple(missing)


def _missing_warnings(missing: Iterable[MissingAnswer], treatment: str) -> list[str]:
    absent: dict[str, list[str]] = {}
    unanswered: dict[str, None] = {}
    unscored = 0
    for answer in missing:
        if answer.reason == NO_ANSWER:
            run = answer.answer_name.removesuffix(".md")
            absent.setdefault(run, []).append(answer.task_id)
        elif answer.reason == NO_RUNS:
            unanswered[answer.task_id] = None
        else:
            unscored += 1
    warnings = []
    if unscored:
        warnings.append(f"answers without a score: {unscored}, {treatment}")
    names = [f"{task} {run}" for run, lacking in absent.items() for task in lacking]
    if names:
        warnings.append(f"missing answers: {len(names)} ({name_list(names)}), {treatment}")
    if unanswered:
        warnings.append(
            f"tasks without any answer: {len(unanswered)} ({name_list(unanswered)}), {treatment}"
        )
    return warnings


def _in_natural_order(names: Iterable[str]) -> list[str]:
    return sorted(set(names), key=natural_key)


# Scores that were made differently


def judge_models(answers: Iterable[ScoredAnswer]) -> dict[str, int]:
    """Return how many answers each model has judged."""
    counts = Counter(answer.judge_model or UNKNOWN_JUDGE for answer in answers)
    return dict(sorted(counts.items()))


def judges_of(answers: Iterable[ScoredAnswer]) -> set[str]:
    """Return the judges of answers, with their parameters."""
    return {answer.facts.judge or UNKNOWN_JUDGE for answer in answers}


def mixture_warnings(answers: Sequence[ScoredAnswer], done: str = "averaged") -> Iterator[str]:
    """Yield one line for each way in which scored answers were judged differently."""
    models = judge_models(answers)
    judges = judges_of(answers)
    servers = {answer.facts.server for answer in answers} - {None}
    if len(models) > 1:
        listed = _names_with_counts(models)
        yield (
            f"scores of different judge models are {done}: {listed}; judge all answers with one "
            "model"
        )
    elif len(judges) > 1 or len(servers) > 1:
        yield (
            f"scores of one judge model with different parameters or servers are {done}: "
            f"{_names_with_counts(Counter(map(_judge_in_words, answers)))}; judge all answers alike"
        )
    if len(models) == 1:
        yield from _served_warnings(answers)
    yield from _version_warnings(answers, done)
    yield from script_warnings(answers)


def _served_warnings(answers: Sequence[ScoredAnswer]) -> Iterator[str]:
    served = served_names(answers)
    if len(served) > 1:
        versions = _names_with_counts(served)
        yield f"the judge was served in different versions, as its server reports: {versions}"


def _version_warnings(answers: Sequence[ScoredAnswer], done: str) -> Iterator[str]:
    versions: dict[str, Counter[str]] = defaultdict(Counter)
    for answer in answers:
        for name, version in answer.facts.versions.items():
            versions[name][version] += 1
    mixed = sorted(name for name, counts in versions.items() if len(counts) > 1)
    # The version of this package comes first, since it decides how a judge is asked.
    mixed.sort(key=lambda name: name != "mind2web2")
    if mixed:
        listed = "; ".join(f"{name} {_names_with_counts(versions[name])}" for name in mixed)
        yield f"results of different versions are {done}: {listed}"


def scripts_by_task(answers: Iterable[ScoredAnswer]) -> dict[str, set[str]]:
    """Return the digests of the scripts that judged answers, as far as results name them."""
    scripts: dict[str, set[str]] = {}
    for answer in answers:
        if answer.facts.script_sha256 is not None:
            scripts.setdefault(answer.task_id, set()).add(answer.facts.script_sha256)
    return scripts


def script_warnings(answers: Sequence[ScoredAnswer]) -> Iterator[str]:
    """Yield a line that names the tasks whose answers were judged by different scripts, if any."""
    scripts = scripts_by_task(answers)
    mixed = [task_id for task_id, digests in scripts.items() if len(digests) > 1]
    if mixed:
        yield (
            "answers to one task were judged by different versions of its script: "
            f"{name_list(mixed)}"
        )


def _judge_in_words(answer: ScoredAnswer) -> str:
    server = answer.facts.server
    judge = answer.facts.judge or UNKNOWN_JUDGE
    return judge if server is None else f"{judge} at {server}"


def _names_with_counts(counts: Mapping[str, int]) -> str:
    """Return names with their counts in natural order.

    Where there are many names, only the most frequent are returned.
    """
    by_count = sorted(counts, key=lambda name: (-counts[name], natural_key(name)))
    frequent = by_count[:_MAX_KINDS_SHOWN]
    shown = []
    for name in sorted(frequent, key=natural_key):
        shown.append(f"{name} ({counted(counts[name], 'answer')})")
    listed = ", ".join(shown)
    hidden = len(counts) - len(frequent)
    return f"{listed} and {hidden} more" if hidden else listed
