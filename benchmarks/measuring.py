"""Medians of several runs, and figures beside their targets, for the other benchmarks."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

RUNS = 7


def seconds(work: Callable[[], object]) -> float:
    """Return how long one call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median_s(work: Callable[[], object], runs: int = RUNS) -> float:
    """Return the median over several calls, after one that does not count."""
    work()
    return statistics.median(seconds(work) for _ in range(runs))


def show(what: str, took_s: float, target_s: float | None = None, remark: str = "") -> None:
    """Print a figure with its share of the target, where there is one."""
    share = "" if target_s is None else f"{took_s / target_s:6.2f} of {_readable(target_s)}"
    sys.stdout.write(f"  {what:<58} {_readable(took_s):>9} {share:<19} {remark}".rstrip() + "\n")
    sys.stdout.flush()


def title(text: str) -> None:
    """Print what the next figures are about."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _readable(duration_s: float) -> str:
    return f"{duration_s:.2f} s" if duration_s >= 1 else f"{duration_s * 1000:.1f} ms"
