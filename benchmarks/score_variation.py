"""Simulate the coverage of the metrics' intervals, and the bias of variance components."""

from __future__ import annotations

import random
import sys
from statistics import fmean

from measuring import title

from mind2web2.analysis.sampled_metrics import sample_metrics
from mind2web2.analysis.score_matrix import score_grid
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.statistics.uncertainty import bootstrap_intervals, nested_variance

SIMULATIONS = 2000
RESAMPLES = 1000
RUNS = 3
JUDGMENTS = 3
LEAVES = 6
TASKS = (10, 30, 130)
# Variances of a score between tasks, runs and judgments, and of leaves that the judge decides
# wrongly.
COMPONENTS = {"between_tasks": 0.04, "between_runs": 0.01, "between_judgments": 0.0025}
METRICS = ("avg_score", "success_rate")


def answers(draws: random.Random, tasks: int) -> list[ScoredAnswer]:
    """Return an agent's answers to tasks of any difficulty, each answer a share of leaves."""
    found = []
    for task in range(tasks):
        chance = draws.betavariate(1.2, 0.8)
        for run in range(1, RUNS + 1):
            passed = sum(draws.random() < chance for _ in range(LEAVES))
            found.append(ScoredAnswer(f"task_{task}", f"answer_{run}.md", passed / LEAVES))
    return found


def show_coverage(tasks: int, truths: dict[str, float]) -> None:
    """Print how often the intervals of both metrics cover the truth."""
    draws = random.Random(tasks)
    covered = dict.fromkeys(METRICS, 0)
    for _ in range(SIMULATIONS):
        metrics = sample_metrics(score_grid(answers(draws, tasks)))
        for name in METRICS:
            sums = metrics[name].over(list(metrics[name].values))
            rows = list(zip(*sums.columns, strict=True))
            (found,) = bootstrap_intervals(
                rows, [(sums.statistic, sums.limits)], resamples=RESAMPLES
            )
            covered[name] += found is not None and found.low <= truths[name] <= found.high
    shares = ", ".join(f"{name} {count / SIMULATIONS:.1%}" for name, count in covered.items())
    sys.stdout.write(f"  {tasks} tasks x {RUNS} runs covered: {shares}\n")
    sys.stdout.flush()


def true_values() -> dict[str, float]:
    """Return both metrics over very many tasks."""
    scores = [answer.score or 0.0 for answer in answers(random.Random(99), 200_000)]
    return {
        "avg_score": fmean(scores),
        "success_rate": fmean(score == 1.0 for score in scores),
    }


def scores(draws: random.Random, tasks: int) -> list[list[list[float]]]:
    """Return scores by task, run and judgment with the known components of variance."""
    of_task, of_run, of_judgment = (value**0.5 for value in COMPONENTS.values())
    found = []
    for _ in range(tasks):
        task = draws.gauss(0.5, of_task)
        runs = [task + draws.gauss(0.0, of_run) for _ in range(RUNS)]
        found.append(
            [[run + draws.gauss(0.0, of_judgment) for _ in range(JUDGMENTS)] for run in runs]
        )
    return found


def show_components(tasks: int) -> None:
    """Print the mean of each estimated component beside the true one."""
    draws = random.Random(tasks)
    found = [nested_variance(scores(draws, tasks)) for _ in range(SIMULATIONS)]
    shown = []
    for name, truth in COMPONENTS.items():
        mean = fmean(getattr(each, name) or 0.0 for each in found)
        shown.append(f"{name} {mean:.5f} ({mean / truth - 1:+.1%})")
    sys.stdout.write(f"  {tasks} tasks x {RUNS} runs x {JUDGMENTS} judgments: {', '.join(shown)}\n")
    sys.stdout.flush()


def main() -> None:
    """Simulate and print."""
    title(f"Components of variance, means of {SIMULATIONS:,} simulations, and their errors")
    for tasks in TASKS:
        show_components(tasks)
    title(f"Intervals of metrics at 95%, {SIMULATIONS:,} simulations, {RESAMPLES:,} resamples each")
    truths = true_values()
    for tasks in TASKS:
        show_coverage(tasks, truths)


if __name__ == "__main__":
    main()
