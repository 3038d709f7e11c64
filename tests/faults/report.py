"""The fault suite in its long form: ``make faults`` runs it and prints what came of it."""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import time
from collections.abc import Sequence

from faults import judge_faults
from faults.figures import Figures
from rich.console import Console
from rich.table import Table

_COLUMNS = (
    "part",
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
_WIDTH = 120


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite, print what came of it, and return 1 if anything went wrong."""
    options = _parser().parse_args(arguments)
    # What nobody else takes care of would be printed; it is of nothing but a judge that fails.
    logging.lastResort = logging.NullHandler()
    console = Console(width=_WIDTH)
    figures = []
    started_s = time.monotonic()
    for name, run in (("judge faults", judge_faults.run),):
        console.print(f"{name} ...")
        figures.append(run(options.schedules, options.seed))
    print_report(console, figures)
    console.print(f"{time.monotonic() - started_s:.0f} s, seed {options.seed}.")
    return 0 if all(one.is_clean for one in figures) else 1


def print_report(console: Console, figures: Sequence[Figures]) -> None:
    """Print a line for each part, and what hindered it."""
    table = Table(title="Faults")
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column == "part" else "right")
    for one in figures:
        table.add_row(*_cells(one))
    console.print(table)
    for one in figures:
        for hindrance in one.hindrances:
            console.print(f"Wrong: {one.part}: {hindrance}", soft_wrap=True)


def _cells(one: Figures) -> list[str]:
    counts = (one.disturbances, one.answers, one.without_result, one.wrong_scores, one.lost_judgments)
    counts += (one.judged_twice, one.half_written_files)
    times_s = one.recovery_s or (0.0,)
    return [one.part, *map(str, counts), f"{statistics.median(times_s):.1f}", f"{max(times_s):.1f}"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument(
        "--schedules", type=int, default=200, help="of a judge that misbehaves (default: 200)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule and moment (default: 1)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
