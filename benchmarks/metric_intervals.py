"""Measure the intervals of an agent's metrics: 130 tasks, 10,000 resamples."""

from __future__ import annotations

import random

from measuring import median_s, show, title

from mind2web2.analysis.comparison import ranking
from mind2web2.analysis.sampled_metrics import metric_intervals
from mind2web2.analysis.score_matrix import score_grid
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.statistics.uncertainty import RESAMPLES

TASKS = 130
ANSWERS = 3
RUNS = 3
TARGET_S = 2.0
SHARE_OF_GAPS = 0.05


def answers(seed: int, tasks: int = TASKS, share_of_gaps: float = 0.0) -> list[ScoredAnswer]:
    """Return an agent's answers with scores, words and times by chance."""
    draws = random.Random(seed)
    return [
        ScoredAnswer(
            f"task_{task}",
            f"answer_{run}.md",
            draws.choice([0.0, draws.random(), 1.0]),
            draws.randint(100, 2000),
            draws.uniform(60, 900),
        )
        for task in range(tasks)
        for run in range(1, ANSWERS + 1)
        if draws.random() >= share_of_gaps
    ]


def main() -> None:
    """Measure and print."""
    title(f"Intervals of five metrics, {RESAMPLES:,} resamples, median of {RUNS}")
    for tasks in (TASKS, 10 * TASKS):
        grid = score_grid(answers(1, tasks))
        took_s = median_s(lambda grid=grid: metric_intervals(grid), RUNS)
        show(f"{tasks} tasks of {ANSWERS} answers", took_s, TARGET_S * tasks / TASKS)
    gaps = score_grid(answers(1, share_of_gaps=SHARE_OF_GAPS))
    show(
        f"{TASKS} tasks, {SHARE_OF_GAPS:.0%} of the answers missing",
        median_s(lambda: metric_intervals(gaps), RUNS),
        TARGET_S,
    )
    first, second = ("old", answers(1)), ("new", answers(2))
    show(
        f"two agents compared, {TASKS} tasks",
        median_s(lambda: ranking((first, second)), RUNS),
        TARGET_S,
    )


if __name__ == "__main__":
    main()
