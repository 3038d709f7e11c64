"""The fault suite in its long form: ``make faults`` runs it and prints the figures."""

import argparse
import logging
import sys
import time

from faults import crashes, judge_faults, processes, stops


def main(arguments=None) -> int:
    """Run the suite, print its figures, and return 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument(
        "--schedules",
        type=int,
        default=200,
        help="of a judge that fails (default: 200)",
    )
    parser.add_argument(
        "--moments",
        type=int,
        default=100,
        help="of a kill, for each part (default: 100)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=30,
        help="of several processes at once (default: 30)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="of the first schedule and moment (default: 1)",
    )
    options = parser.parse_args(arguments)
    # Errors of a judge that fails, which no handler takes, would be printed.
    logging.lastResort = logging.NullHandler()
    counted = (
        (judge_faults.PARTS, options.schedules),
        (crashes.PARTS, options.moments),
        (processes.PARTS, options.rounds),
        (stops.PARTS, options.rounds),
    )
    return report(
        [(run, count) for parts, count in counted if count for run in parts],
        options.seed,
    )


def report(parts, seed) -> int:
    """Run parts, each as often as given, and print their figures.

    Return 1 if anything went wrong.
    """
    started_s, is_clean = time.monotonic(), True
    for run, count in parts:
        figures = run(count, seed)
        is_clean = is_clean and figures.is_clean
        print(figures.in_words(), *figures.hindrances, sep="\n  ", flush=True)  # noqa: T201 (it is a command)
    print(f"{time.monotonic() - started_s:.0f} s, seed {seed}.")  # noqa: T201
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
