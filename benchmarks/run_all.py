"""Runs every benchmark, each in a process of its own, so that none finds another's imports done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

NAMES = (
    "start_times",
    "cache_lookups",
    "rubric_trees",
    "shared_pages",
    "judge_overhead",
    "throughput",
    "busy_requests",
    "rate_limits",
    "judge_pool",
    "chain",
    "large",
    "page_checks",
    "batch_memory",
    "prompt_prefix",
    "isolation",
    "scorer",
    "metric_intervals",
    "paired_tests",
    "score_variation",
    "audit_correction",
    "two_judges",
    "probe_estimates",
    "probe_pages",
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
    folder = Path(__file__).resolve().parent
    # Some use the tests' servers.
    environment = {**os.environ, "PYTHONPATH": str(folder.parent / "tests")}
    for name in NAMES:
        command = [sys.executable, folder / f"{name}.py"]
        subprocess.run(command, check=True, env=environment)
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
