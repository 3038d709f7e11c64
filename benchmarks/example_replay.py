"""Measure the README's first command, which scores the example's nine answers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import median_s, show, title

REPOSITORY = Path(__file__).resolve().parent.parent
RUNS = 5
COMMAND = [
    "run_eval.py", "--agent_name", "example", "--llm_provider", "replay",
    "--judgments", "examples/judgments.jsonl",
]  # fmt: skip


def replay() -> None:
    """Run the command with a results folder of its own."""
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, *COMMAND, "--eval_results_root", results]
        subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)
        found = len([*Path(results).glob("example/*/*/results/*.json")])
    if found != 9:
        raise SystemExit(f"{found} results of nine answers")


def main() -> None:
    """Measure and print."""
    title(f"The example replayed: wall time of the command, median of {RUNS}")
    show("three tasks, nine answers", median_s(replay, RUNS))


if __name__ == "__main__":
    main()
