"""Seconds until Python has imported the package, and until a command has answered."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

from measuring import median_s, show, title

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET_S = 0.5
COMMANDS = {
    "python -c pass (for comparison)": ["-c", "pass"],
    "import mind2web2": ["-c", "import mind2web2"],
    "from mind2web2 import Evaluator, CacheFileSys": ["-c", "from mind2web2 import Evaluator, CacheFileSys"],
    "from mind2web2.cli import main": ["-c", "from mind2web2.cli import main"],
    "python run_eval.py --help": ["run_eval.py", "--help"],
    "mind2web2 --help": ["-c", "from mind2web2.cli import main; main(['--help'])"],
    "mind2web2 evaluate --help": ["-c", "from mind2web2.cli import main; main(['evaluate', '--help'])"],
}


def run(arguments: list[str]) -> None:
    """Run Python and wait for it."""
    subprocess.run([sys.executable, *arguments], cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Measure and print."""
    title("Start: wall time of a process, median of 7")
    for name, arguments in COMMANDS.items():
        target_s = None if "pass" in name else TARGET_S
        show(name, median_s(partial(run, arguments)), target_s)


if __name__ == "__main__":
    main()
