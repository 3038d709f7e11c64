"""Measure the seconds until import, first command, and first score.

With ``--than FOLDER``, another checkout takes turns with this one, so that both meet the same
machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from measuring import median_s, seconds, show, title
from slow_judge import SlowJudge
from throughput import AGENT, lay_out

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET_S, HELP_TARGET_S, ANSWER_TARGET_S = 0.5, 0.1, 1.0
RUNS = 7
# A run's start is compared with this one.
IMPORT, MAX_IMPORTS = "import openai", 1.2
COMMANDS = {
    "python -c pass (for comparison)": ["-c", "pass"],
    "import mind2web2": ["-c", "import mind2web2"],
    "from mind2web2 import Evaluator, CacheFileSys": [
        "-c",
        "from mind2web2 import Evaluator, CacheFileSys",
    ],
    "from mind2web2.cli import main": ["-c", "from mind2web2.cli import main"],
    "python run_eval.py --help": ["run_eval.py", "--help"],
    "mind2web2 --help": ["-c", "from mind2web2.cli import main; main(['--help'])"],
    "mind2web2 evaluate --help": [
        "-c",
        "from mind2web2.cli import main; main(['evaluate', '--help'])",
    ],
}


def run(arguments: list[str]) -> None:
    """Run Python and wait for it."""
    subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def score_one(checkout: Path, url: str) -> None:
    """Evaluate one answer of one claim, from nothing."""
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder), 1, 1, 1)
        words = ["--agent_name", AGENT, "--judge_base_url", url, "--no_capture"]
        subprocess.run(
            [sys.executable, checkout / "run_eval.py", *words],
            cwd=folder,
            env=os.environ | {"OPENAI_API_KEY": "none", "PYTHONPATH": str(checkout)},
            check=True,
            stdout=subprocess.DEVNULL,
        )


def score_in_turn(checkouts: dict[str, Path]) -> None:
    """Measure the scoring of one answer in each checkout, and the import of an SDK.

    The import takes turns with them: the ratio hardly depends on the machine, or on what else it
    does.
    """
    took_s: dict[str, list[float]] = {name: [] for name in (IMPORT, *checkouts)}
    with SlowJudge(0.0) as judge:
        for _ in range(RUNS + 1):
            took_s[IMPORT].append(seconds(partial(run, ["-c", IMPORT])))
            for name, checkout in checkouts.items():
                took_s[name].append(seconds(partial(score_one, checkout, judge.base_url)))
    # The first ones compile what has changed.
    medians_s = {name: statistics.median(all_s[1:]) for name, all_s in took_s.items()}
    for name, median in medians_s.items():
        target_s = None if name == IMPORT else ANSWER_TARGET_S
        show(name, median, target_s, f"least {min(took_s[name][1:]):.2f} s")
    for name in checkouts:
        ratio = medians_s[name] / medians_s[IMPORT]
        title(f"  {name}: {ratio:.2f} times {IMPORT!r} (at most {MAX_IMPORTS})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--than", type=Path, metavar="FOLDER", help="another checkout to compare with"
    )
    options = parser.parse_args()
    title(f"Start: wall time of a process, median of {RUNS}")
    for name, arguments in COMMANDS.items():
        target_s = HELP_TARGET_S if "--help" in name else TARGET_S
        show(
            name,
            median_s(partial(run, arguments), RUNS),
            None if "pass" in name else target_s,
        )
    checkouts = {"one answer scored, instant judge": REPOSITORY}
    if options.than is not None:
        checkouts[f"the same in {options.than}"] = options.than.resolve()
    score_in_turn(checkouts)


if __name__ == "__main__":
    main()
