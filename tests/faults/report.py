"""The fault suite in its long form: ``make faults`` runs it and prints what came of it."""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from faults import crashes, judge_faults, processes, stops
from faults.figures import Figures
from rich.console import Console

from mind2web2.cli.console import print_amounts

# What is tried, how (given how often, and a seed), and how often.
Part = tuple[str, Callable[[int, int], Figures], int]

_COLUMNS = (
    "disturbances",
    "answers",
    "no result",
    "wrong scores",
    "lost judgments",
    "judged twice",
    "half-written files",
    "seconds to recover",
    "at most",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite, print what came of it, and return 1 if anything went wrong."""
    options = _parser().parse_args(arguments)
    # What nobody else takes care of would be printed; it is of nothing but a judge that fails.
    logging.lastResort = logging.NullHandler()
    counted = (
        (judge_faults.PARTS, options.schedules),
        (crashes.PARTS, options.moments),
        (processes.PARTS, options.rounds),
        (stops.PARTS, options.rounds),
    )
    return report(Console(), [(*part, count) for parts, count in counted for part in parts], options.seed)


def report(console: Console, parts: Iterable[Part], seed: int) -> int:
    """Run parts, each as often as it says, print what came of them, and return 1 if anything went wrong."""
    figures = []
    started_s = time.monotonic()
    for name, run, count in parts:
        if count:
            console.print(f"{name}, {count} times ...")
            figures.append(run(count, seed))
    print_report(console, figures)
    console.print(f"{time.monotonic() - started_s:.0f} s, seed {seed}.")
    return 0 if all(one.is_clean for one in figures) else 1


def print_report(console: Console, figures: Sequence[Figures]) -> None:
    """Print a line for each part, and what hindered it."""
    print_amounts(console, "Faults", "part", _COLUMNS, {one.part: _cells(one) for one in figures})
    for one in figures:
        for hindrance in one.hindrances:
            console.print(f"Wrong: {one.part}: {hindrance}", soft_wrap=True)


def _cells(one: Figures) -> list[str]:
    counts = (one.disturbances, one.answers, one.without_result, one.wrong_scores, one.lost_judgments)
    counts += (one.judged_twice, one.half_written_files)
    times_s = one.recovery_s or (0.0,)
    return [*map(str, counts), f"{statistics.median(times_s):.1f}", f"{max(times_s):.1f}"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument(
        "--schedules",
        type=int,
        default=200,
        help="of a judge that misbehaves (default: 200; 0 leaves them out)",
    )
    parser.add_argument(
        "--moments", type=int, default=100, help="at which each part is killed (default: 100)"
    )
    parser.add_argument("--rounds", type=int, default=30, help="of several processes at once (default: 30)")
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule and moment (default: 1)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
