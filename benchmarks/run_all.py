"""Runs every benchmark, each in a process of its own, so that none finds another's imports done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NAMES = (
    "start_times",
    "cache_lookups",
    "rubric_trees",
    "shared_pages",
    "judge_overhead",
    "deferred_checks",
    "throughput",
    "busy_requests",
    "rate_limits",
    "judge_pool",
    "page_checks",
    "batch_memory",
    "prompt_prefix",
    "isolation",
    "scorer",
    "metric_intervals",
    "paired_tests",
    "score_variation",
    "audit_correction",
    "votes_on_demand",
    "two_judges",
    "example_replay",
    "discovery",
    "html_to_text",
    "capture_speed",
    "capture_memory",
    "long_documents",
    "faithfulness",
)


def main() -> None:
    """Run them in order."""
    for name in NAMES:
        subprocess.run(
            [sys.executable, Path(__file__).with_name(f"{name}.py")], check=True
        )
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
