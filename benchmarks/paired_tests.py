"""Simulate the coverage of the intervals and p-values of ``compare``, and its time."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator

from measuring import show, title

from mind2web2.analysis.comparison import ranking
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.statistics.paired import PairedTest

SIMULATIONS = 2000
RUNS = 3
LEAVES = 6
TASKS = (10, 30, 130)
AGENTS = 6
TARGET_S = 5.0
# The second agent's advantage in skill, at a task of medium difficulty.
EFFECT = 0.08

Scores = Callable[[random.Random, float], float]


def partial_completion(draws: random.Random, chance: float) -> float:
    """Return the share of leaves that pass."""
    return sum(draws.random() < chance for _ in range(LEAVES)) / LEAVES


def success(draws: random.Random, chance: float) -> float:
    """Return 1 where an answer passes as a whole."""
    return float(draws.random() < chance)


def chances(draws: random.Random, effect: float) -> tuple[float, float]:
    """Return both agents' chances at a task, mostly by its difficulty."""
    difficulty = draws.betavariate(1.2, 1.2)
    strength = draws.uniform(-0.3, 0.3)
    found = difficulty, min(1.0, max(0.0, difficulty + effect + strength))
    # Without an effect either agent is the stronger one as often, in spite of the limits.
    return found if effect or draws.random() < 0.5 else found[::-1]


def true_difference(effect: float, seed: int = 99, tasks: int = 200_000) -> float:
    """Return the expected difference over all tasks of the kind."""
    draws = random.Random(seed)
    found = (chances(draws, effect) for _ in range(tasks))
    return sum(second - first for first, second in found) / tasks


def simulated(scores: Scores, tasks: int, effect: float) -> Iterator[list[float]]:
    """Yield the differences of tasks, each averaged over its runs."""
    draws = random.Random(tasks)
    for _ in range(SIMULATIONS):
        differences = []
        for _ in range(tasks):
            first, second = chances(draws, effect)
            ours = sum(scores(draws, second) for _ in range(RUNS))
            theirs = sum(scores(draws, first) for _ in range(RUNS))
            differences.append((ours - theirs) / RUNS)
        yield differences


def show_coverage(name: str, scores: Scores) -> None:
    """Print how often intervals cover the truth, and how often the test errs."""
    truth = true_difference(EFFECT)
    for tasks in TASKS:
        covered = sum(
            (found := PairedTest.of(differences, (-1.0, 1.0)).interval) is not None
            and found.low <= truth <= found.high
            for differences in simulated(scores, tasks, EFFECT)
        )
        p_values = [
            PairedTest.of(differences).p_value or 0.0
            for differences in simulated(scores, tasks, 0.0)
        ]
        below = ", ".join(
            f"{sum(p < level for p in p_values) / SIMULATIONS:.3f} below {level}"
            for level in (0.05, 0.2, 0.5)
        )
        sys.stdout.write(
            f"  {name}, {tasks} tasks x {RUNS} runs: {covered / SIMULATIONS:.1%} covered; "
            f"p-values: {below}\n"
        )
        sys.stdout.flush()


def answers(seed: int) -> list[ScoredAnswer]:
    """Return an agent's answers to the largest number of tasks."""
    draws = random.Random(seed)
    return [
        ScoredAnswer(f"task_{task}", f"answer_{run}.md", partial_completion(draws, 0.6))
        for task in range(TASKS[-1])
        for run in range(1, RUNS + 1)
    ]


def main() -> None:
    """Simulate, measure and print."""
    title(f"Ranking of {AGENTS} agents, {TASKS[-1]} tasks x {RUNS} runs")
    agents = [(f"agent_{number}", answers(number)) for number in range(AGENTS)]
    started = time.process_time()
    ranking(agents)
    # The processor's time, so that other programs do not count.
    show("all pairs, both metrics", time.process_time() - started, TARGET_S)
    title(f"Intervals at 95%, {SIMULATIONS:,} simulations each")
    show_coverage("partial completion", partial_completion)
    show_coverage("success rate", success)


if __name__ == "__main__":
    main()
